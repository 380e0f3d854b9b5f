// Package dra implements the node side of dynamic resource allocation: it calls DRA drivers to
// prepare a pod's resource claims before the pod starts, and to unprepare them after the last pod
// of a claim has ended. Before it calls a driver, it writes a checkpoint in the reference
// kubelet's format, so that a restarted agent can unprepare every prepared claim.
package dra
