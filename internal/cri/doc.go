// Package cri calls the container runtime. It is the only importer of the CRI gRPC client: it
// gives every call a deadline, names the failed operation in its errors, makes removal
// idempotent, and converts the runtime's messages to the types of package pod.
//
// A Client is safe for concurrent use. It connects on first use, and reconnects within a second
// after the runtime is back; calls while the runtime is down fail at once, with an error for
// which IsUnavailable is true.
package cri
