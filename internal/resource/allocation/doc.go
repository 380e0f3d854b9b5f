// Package allocation persists the allocated and the actuated resources of pods, and decides
// whether a running pod may be resized.
package allocation
