// Package worker runs one state machine per pod: syncing, stopping, finishing, ended,
// removing, gone. A pod's worker is the only thing that acts on that pod, one step at a
// time; what happens during a step decides which step comes next.
package worker
