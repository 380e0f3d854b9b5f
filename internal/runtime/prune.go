package runtime

import (
	"time"

	"swiftlet/internal/pod"
)

// Keep says what stays of a pod's remains.
type Keep struct {
	// Dead is how many ended instances of each container stay; all where it is negative. A
	// container's newest instance always does: by it one knows how the container is.
	Dead int
	// Since is when a container that is too young to go was created at the earliest.
	Since time.Time
}

// Pruned are a pod's remains that nobody needs any more.
type Pruned struct {
	Parts
	// Wait is how long until the next is old enough to go; zero if none is too young.
	Wait time.Duration
}

// Prune picks what to remove of a pod that goes on living: of each container's ended
// instances all but the newest and the young, and sandboxes that are neither the newest nor ready
// and in which nothing is kept. o must be sorted.
func Prune(o pod.Observed, keep Keep) Pruned {
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
		surplus := dead && seen[c.Name] && keep.Dead >= 0 && ended[c.Name] > keep.Dead
		seen[c.Name] = true
		young := !c.CreatedAt.Before(keep.Since)
		if surplus && !young || overtaken {
			pruned.Containers = append(pruned.Containers, c)
			continue
		}
		kept[o.SandboxOf(&c)] = true
		if left := c.CreatedAt.Sub(keep.Since) + 1; surplus && (pruned.Wait == 0 || left < pruned.Wait) {
			pruned.Wait = left
		}
	}
	for i, s := range o.Sandboxes {
		if i > 0 && !s.Ready && !kept[s.ID] {
			pruned.Sandboxes = append(pruned.Sandboxes, s)
		}
	}
	return pruned
}
