package runtime

import (
	"time"

	"swiftlet/internal/pod"
)

// GCPolicy says which dead containers of a pod are kept.
type GCPolicy struct {
	// MaxPerContainer is how many dead instances of each container are kept, all if negative.
	// The newest instance is always kept: the container's state follows from it.
	MaxPerContainer int
	// CreatedBefore: containers that were created later are too young to be removed, except those that
	// were created after Now, if that is set: the clock was set back since.
	CreatedBefore, Now time.Time
}

// TooYoung reports whether the container must be kept for now.
func (p GCPolicy) TooYoung(c *pod.Container) bool {
	return !c.CreatedAt.Before(p.CreatedBefore) && (p.Now.IsZero() || !c.CreatedAt.After(p.Now))
}

// Garbage are the dead containers and sandboxes of a pod that can be removed.
type Garbage struct {
	Targets
	// Wait is how long until the next container is old enough; zero if none is too young.
	Wait time.Duration
}

// FindGarbage returns what can be removed of a pod that keeps running: the dead instances of
// each container except those that policy keeps, and sandboxes that are neither the newest nor
// ready and contain no container that is kept. o must be sorted.
func FindGarbage(o pod.Observed, policy GCPolicy) Garbage {
	var garbage Garbage
	exited, seen := map[string]int{}, map[string]bool{}
	inUse := map[string]bool{} // sandboxes with containers that are kept
	for _, c := range o.Containers {
		dead := c.State == pod.Exited
		if dead {
			exited[c.Name]++
		}
		// A container that was created and has a newer instance will never start.
		superseded := c.State == pod.Created && seen[c.Name]
		surplus := dead && seen[c.Name] && policy.MaxPerContainer >= 0 && exited[c.Name] > policy.MaxPerContainer
		seen[c.Name] = true
		if surplus && !policy.TooYoung(&c) || superseded {
			garbage.Containers = append(garbage.Containers, c)
			continue
		}
		inUse[o.SandboxOf(&c)] = true
		if left := c.CreatedAt.Sub(policy.CreatedBefore) + 1; surplus && (garbage.Wait == 0 || left < garbage.Wait) {
			garbage.Wait = left
		}
	}
	for i, s := range o.Sandboxes {
		if i > 0 && !s.Ready && !inUse[s.ID] {
			garbage.Sandboxes = append(garbage.Sandboxes, s)
		}
	}
	return garbage
}
