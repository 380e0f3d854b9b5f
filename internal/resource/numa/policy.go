package numa

import (
	"maps"
	"slices"
	"strconv"

	"swiftlet/internal/config"
)

// Topology manager policies.
const (
	None       = "none"             // no alignment
	BestEffort = "best-effort"      // as few nodes as possible
	Restricted = "restricted"       // a preferred hint, or the pod is rejected
	SingleNode = "single-numa-node" // one node, or the pod is rejected
)

// Topology manager scopes.
const (
	ByContainer = "container"
	ByPod       = "pod"
)

// minMaxNodes is the default and the least value of MaxNodes.
const minMaxNodes = 8

// Options are the policy's options.
type Options struct {
	// PreferClosest chooses among sets of nodes of the same size by distance.
	PreferClosest bool
	// MaxNodes is the largest number of NUMA nodes that the machine may have.
	MaxNodes int
}

// Option names in topologyManagerPolicyOptions.
const (
	preferClosest = "prefer-closest-numa-nodes"
	maxNodes      = "max-allowable-numa-nodes"
)

// ParseOptions parses topologyManagerPolicyOptions.
func ParseOptions(values map[string]string) (o Options, err error) {
	o.MaxNodes = minMaxNodes
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value, field := values[name], "topologyManagerPolicyOptions."+name
		switch name {
		case preferClosest:
			if o.PreferClosest, err = strconv.ParseBool(value); err != nil {
				return o, config.Invalid(field, "%q is neither true nor false", value)
			}
		case maxNodes:
			if o.MaxNodes, err = strconv.Atoi(value); err != nil || o.MaxNodes < minMaxNodes {
				return o, config.Invalid(field, "%q is not a number of at least %d", value, minMaxNodes)
			}
		default:
			return o, config.Invalid(field, "is not an option of the topology manager%s",
				config.DidYouMean(name, slices.Values([]string{preferClosest, maxNodes})))
		}
	}
	return o, nil
}

// mergeByPolicy merges the hints of all resources, and reports whether the policy admits the result.
func mergeByPolicy(policy string, layout Layout, all []Hints) (Hint, bool) {
	resources := flatten(all)
	switch policy {
	case None:
		return Hint{}, true
	case SingleNode:
		layout.Distances = nil
		hint := merge(layout, onlySingleNode(resources))
		if hint.Nodes == layout.All {
			hint.Nodes = 0
		}
		return hint, hint.Preferred
	case Restricted:
		hint := merge(layout, resources)
		return hint, hint.Preferred
	default:
		return merge(layout, resources), true
	}
}

// onlySingleNode returns the preferred hints of at most one node.
func onlySingleNode(resources [][]Hint) [][]Hint {
	filtered := make([][]Hint, len(resources))
	for i, hints := range resources {
		filtered[i] = slices.DeleteFunc(slices.Clone(hints), func(h Hint) bool { return !h.Preferred || h.Nodes.Count() > 1 })
	}
	return filtered
}
