// Package cri speaks to the container runtime. It is the only importer of the CRI gRPC
// client: it gives every call a deadline, names the failing operation in its errors,
// treats the removal of what is already gone as done, and turns the runtime's messages
// into the vocabulary of package pod.
//
// A Client is safe for use by many goroutines. It connects when first used and connects
// again by itself within a second of the runtime's return; calls made while the runtime
// is away fail at once, with an error for which IsUnavailable is true.
package cri
