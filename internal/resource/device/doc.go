// Package device allocates the devices of device plugins (v1beta1). Plugins register on this
// package's socket or through pluginreg, and list their devices.
//
// Allocate reserves a pod's devices at admission, without a call to a plugin. Prepare, which the
// pod's worker calls before it starts anything of the pod, calls the plugins' Allocate and writes
// the responses to a checkpoint before they are used. Release frees the devices after the pod's
// last container has stopped.
package device
