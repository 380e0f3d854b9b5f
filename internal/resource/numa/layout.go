package numa

import "swiftlet/internal/resource/topology"

// LayoutOf returns the layout of a machine's NUMA nodes. It fails for a node id that does not fit
// in Nodes.
func LayoutOf(m *topology.Machine) (Layout, error) {
	layout := Layout{Distances: map[int][]uint64{}}
	for _, n := range m.Nodes {
		node, err := NewNodes(n.ID)
		if err != nil {
			return layout, err
		}
		layout.All |= node
		layout.Distances[n.ID] = n.Distances
	}
	return layout, nil
}
