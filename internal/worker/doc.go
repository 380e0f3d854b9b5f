// Package worker runs one state machine per pod: syncing, stopping, finishing, ended,
// removing, gone. A pod's worker is the only thing that acts on that pod, one step at a
// time; whatever happens meanwhile changes what its next step will be.
package worker
