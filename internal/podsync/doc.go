// Package podsync has the ordered steps that start one pod and take it down. It acts through
// small interfaces. PodSteps remembers only what it cannot read back: why a container failed to
// start, and the back-off of a crashing one.
package podsync
