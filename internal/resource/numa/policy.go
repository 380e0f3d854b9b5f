package numa

import (
	"fmt"
	"slices"
	"strconv"
)

// The policies, by what is asked of the nodes that a container's resources come from.
const (
	None       = "none"             // nothing
	BestEffort = "best-effort"      // the fewest that can be had
	Restricted = "restricted"       // the fewest that there could be, or the pod is refused
	SingleNode = "single-numa-node" // one, or the pod is refused
)

// The scopes, by whose resources are to come from the same nodes.
const (
	ByContainer = "container"
	ByPod       = "pod"
)

// fewest is how many nodes a policy must be able to cope with at least.
const fewest = 8

// Options refine a policy.
type Options struct {
	// PreferClosest chooses among sets of nodes of the same size by distance.
	PreferClosest bool
	// MaxNodes is how many nodes the machine may have.
	MaxNodes int
}

// ParseOptions reads topologyManagerPolicyOptions.
func ParseOptions(given map[string]string) (o Options, err error) {
	o.MaxNodes = fewest
	for name, value := range given {
		switch name {
		case "prefer-closest-numa-nodes":
			if o.PreferClosest, err = strconv.ParseBool(value); err != nil {
				return o, fmt.Errorf("topologyManagerPolicyOptions: %s: %q is neither true nor false", name, value)
			}
		case "max-allowable-numa-nodes":
			if o.MaxNodes, err = strconv.Atoi(value); err != nil || o.MaxNodes < fewest {
				return o, fmt.Errorf("topologyManagerPolicyOptions: %s: %q is not a number of at least %d", name, value, fewest)
			}
		default:
			return o, fmt.Errorf("topologyManagerPolicyOptions: there is no option %q", name)
		}
	}
	return o, nil
}

// decide settles on one place for all resources, and says whether the policy allows it.
func decide(policy string, layout Layout, all []Hints) (Hint, bool) {
	resources := flatten(all)
	switch policy {
	case None:
		return Hint{}, true
	case SingleNode:
		layout.Distances = nil
		hint := merge(layout, onlySingle(resources))
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

// onlySingle keeps what is preferred and comes from one node or from anywhere.
func onlySingle(resources [][]Hint) [][]Hint {
	kept := make([][]Hint, len(resources))
	for i, hints := range resources {
		kept[i] = slices.DeleteFunc(slices.Clone(hints), func(h Hint) bool { return !h.Preferred || h.Nodes.Count() > 1 })
	}
	return kept
}
