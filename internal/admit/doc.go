// Package admit decides which pods run here, and with which resources. Admission passes each
// change of a pod on with its decision. For a new pod, and for a resize, it asks an ordered
// list of checks, each a small function in a file of its own; the first that objects decides.
// Reasons and messages are those of the reference kubelet; schedulers, controllers and
// people look for them.
//
// Checks hold no state. What they need to know comes with the pod or through the
// functions that they are made with, so that others (eviction, shutdown, allocation of
// devices) add their own without this package knowing of them.
package admit
