// Package pod has the types that all packages share: identities of pods, the desired state
// (Snapshot, Change), the observed state (Observed), and pure functions of a pod's spec. Nothing
// here does I/O.
package pod
