package image

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// startGrace is how long an image is kept for a container that is about to be created.
const startGrace = time.Minute

// usageTracker records when each image was last used.
type usageTracker struct {
	mu     sync.Mutex
	images map[string]*usage    // by id
	marked map[string]time.Time // by reference: images of containers about to be created
}

// usage is when an image was seen and used. A zero lastUsed is never.
type usage struct {
	firstSeen time.Time
	lastUsed  time.Time
}

// candidate is an image that no container uses.
type candidate struct {
	id, handler string
	size        uint64
	usage
}

func (u *usageTracker) mark(ref string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.marked[ref] = at
}

// update records the present images and those in use, and returns the unused ones, the least
// recently used first. It never returns pinned images.
func (u *usageTracker) update(all []*runtimeapi.Image, inUse []string, now time.Time) []candidate {
	u.mu.Lock()
	defer u.mu.Unlock()
	inUseRefs := map[string]bool{}
	for _, ref := range inUse {
		inUseRefs[ref] = true
	}
	present := map[string]bool{}
	var unused []candidate
	for _, i := range all {
		present[i.Id] = true
		known := u.images[i.Id]
		if known == nil {
			known = &usage{firstSeen: now}
			u.images[i.Id] = known
		}
		used := false
		for _, ref := range slices.Concat([]string{i.Id}, i.RepoTags, i.RepoDigests) {
			if inUseRefs[ref] {
				known.lastUsed, used = now, true
			}
			if at, ok := u.marked[ref]; ok && at.After(known.lastUsed) {
				known.lastUsed = at
			}
		}
		if !used && !i.Pinned {
			unused = append(unused, candidate{i.Id, i.GetSpec().GetRuntimeHandler(), i.Size, *known})
		}
	}
	maps.DeleteFunc(u.images, func(id string, _ *usage) bool { return !present[id] })
	// A recent mark may belong to an image that the list does not contain yet.
	maps.DeleteFunc(u.marked, func(_ string, at time.Time) bool { return now.Sub(at) > startGrace })
	slices.SortFunc(unused, func(a, b candidate) int {
		return cmp.Or(a.lastUsed.Compare(b.lastUsed), a.firstSeen.Compare(b.firstSeen), cmp.Compare(a.id, b.id))
	})
	return unused
}

// inStartGrace reports whether the image was marked so recently that its container may not
// exist yet.
func (c candidate) inStartGrace(now time.Time) bool {
	return !c.lastUsed.IsZero() && now.Sub(c.lastUsed) < startGrace
}

func (u *usageTracker) forget(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.images, id)
}
