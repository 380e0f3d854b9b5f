// Package device gives out devices that plugins bring to the node (device plugins
// v1beta1). Plugins register on a socket of this package or through pluginreg, list their
// devices, and are asked what a container needs to use those that it was given.
//
// A pod's devices are set aside when the pod is admitted, without asking anybody; the
// plugins are asked by the pod's own worker before anything of the pod starts. What they
// answered is written down before it is used, and given back when nothing of the pod runs.
package device
