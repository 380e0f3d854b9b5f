package memory

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// ReservedByNode merges the configured reservations by NUMA node. Several entries may name one
// node, each with other resources.
func ReservedByNode(entries []kubelet.MemoryReservation) map[int]v1.ResourceList {
	byNode := map[int]v1.ResourceList{}
	for _, e := range entries {
		id := int(e.NumaNode)
		if byNode[id] == nil {
			byNode[id] = v1.ResourceList{}
		}
		maps.Copy(byNode[id], e.Limits)
	}
	return byNode
}
