package runtime

import "swiftlet/internal/pod"

// Pruned are a pod's remains that nobody needs any more.
type Pruned struct {
	Containers []pod.Container
	Sandboxes  []pod.Sandbox
}

// Prune picks what to remove of a pod that goes on living: of each container's ended
// instances all but the newest keep, and sandboxes that are neither the newest nor ready
// and in which nothing is kept. o must be sorted.
func Prune(o pod.Observed, keep int) Pruned {
	var pruned Pruned
	ended, seen := map[string]int{}, map[string]bool{}
	kept := map[string]bool{} // sandboxes with containers that stay
	for _, c := range o.Containers {
		dead := c.State == pod.Exited
		if dead {
			ended[c.Name]++
		}
		// One that was created and then overtaken by a newer instance will never start.
		overtaken := c.State == pod.Created && seen[c.Name]
		seen[c.Name] = true
		if dead && ended[c.Name] > keep || overtaken {
			pruned.Containers = append(pruned.Containers, c)
		} else {
			kept[sandboxOf(o, c)] = true
		}
	}
	for i, s := range o.Sandboxes {
		if i > 0 && !s.Ready && !kept[s.ID] {
			pruned.Sandboxes = append(pruned.Sandboxes, s)
		}
	}
	return pruned
}

// sandboxOf finds a container's sandbox by time: a pod has one at a time, so it is the
// newest that is not younger than the container.
func sandboxOf(o pod.Observed, c pod.Container) string {
	for _, s := range o.Sandboxes {
		if !s.CreatedAt.After(c.CreatedAt) {
			return s.ID
		}
	}
	return ""
}
