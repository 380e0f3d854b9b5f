// Package podsync holds the ordered steps that bring one pod up and take it down. It acts
// through small interfaces. PodSteps keeps only what cannot be read back of its pod: why a
// container last failed to start, and how long a crashing one is held back.
package podsync
