// Package pod is the vocabulary of the agent: how a pod is named, what is wanted of it
// (Snapshot, Change), what was seen of it (Observed), and pure questions about its spec.
// Everything here is a value or a function of values; nothing does I/O.
package pod
