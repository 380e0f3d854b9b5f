// Package admit decides which pods run on this node, and with which resources. Admission
// passes every change of a pod on with its decision. For a new pod, and for a resize, it runs
// an ordered list of checks, one file each; the first rejection decides. Reasons and messages
// are those of the reference kubelet: schedulers, controllers and users depend on them.
//
// Checks are stateless. They use the pod and the functions that they are constructed with, so
// that this package does not depend on eviction, shutdown or device allocation.
package admit
