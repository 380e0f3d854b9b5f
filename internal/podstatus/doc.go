// Package podstatus derives a pod's status from its spec, its observed containers and sandboxes, and
// its probe results. It does no I/O: the same input has the same v1.PodStatus.
package podstatus
