// Package dra has drivers on the node prepare the devices of resource claims (dynamic
// resource allocation) before a pod that uses them starts, and give them back when the last
// pod has ended. Which claim is prepared for whom is written down before a driver is asked,
// in the reference kubelet's form, so that no preparation outlives its pods unseen.
package dra
