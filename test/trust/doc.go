// Package trust runs the tests of reliability, class by class, and records their counts: how many
// faults were injected, how many the node survived, and what was lost. Tests count with package tally.
// `make trust` runs every class whose recorded result is not of this commit.
package trust
