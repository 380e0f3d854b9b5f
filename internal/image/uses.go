package image

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// handover is how long an image that was promised to a container is kept for it.
const handover = time.Minute

// uses remembers when each image was last used.
type uses struct {
	mu     sync.Mutex
	images map[string]*use      // by id
	handed map[string]time.Time // by reference, since the last look
}

// use is what is known of one image. The zero time is never.
type use struct {
	seen time.Time // for the first time
	last time.Time // used
}

// candidate is an image that nobody uses.
type candidate struct {
	id, handler string
	size        uint64
	use
}

func (u *uses) hand(ref string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.handed[ref] = at
}

// look takes note of the images that are there and of those in use, and returns the
// others, the least recently used first. Pinned ones are nobody's to remove.
func (u *uses) look(all []*runtimeapi.Image, inUse []string, now time.Time) []candidate {
	u.mu.Lock()
	defer u.mu.Unlock()
	held := map[string]bool{}
	for _, ref := range inUse {
		held[ref] = true
	}
	present := map[string]bool{}
	var free []candidate
	for _, i := range all {
		present[i.Id] = true
		known := u.images[i.Id]
		if known == nil {
			known = &use{seen: now}
			u.images[i.Id] = known
		}
		used := false
		for _, ref := range slices.Concat([]string{i.Id}, i.RepoTags, i.RepoDigests) {
			if held[ref] {
				known.last, used = now, true
			}
			if at, ok := u.handed[ref]; ok && at.After(known.last) {
				known.last = at
			}
		}
		if !used && !i.Pinned {
			free = append(free, candidate{i.Id, i.GetSpec().GetRuntimeHandler(), i.Size, *known})
		}
	}
	maps.DeleteFunc(u.images, func(id string, _ *use) bool { return !present[id] })
	// What was handed out a moment ago may be of an image that the list does not show yet.
	maps.DeleteFunc(u.handed, func(_ string, at time.Time) bool { return now.Sub(at) > handover })
	slices.SortFunc(free, func(a, b candidate) int {
		return cmp.Or(a.last.Compare(b.last), a.seen.Compare(b.seen), cmp.Compare(a.id, b.id))
	})
	return free
}

// promised reports whether a container was given the image so lately that it may not hold
// it yet.
func (c candidate) promised(now time.Time) bool {
	return !c.last.IsZero() && now.Sub(c.last) < handover
}

func (u *uses) forget(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.images, id)
}
