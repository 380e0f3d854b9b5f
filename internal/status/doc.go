// Package status publishes pod status: one write per change, each pod's in order, for as
// long as it takes.
package status
