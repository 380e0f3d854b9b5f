package observe

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"swiftlet/internal/pod"
)

// member is a container as the runtime tells of it, the sandbox it is in, the message it
// left behind, and when we first heard of it.
type member struct {
	pod.Container
	sandbox string
	message string
	learned time.Time
}

// shown is the container with its own message after the runtime's.
func (m member) shown() pod.Container {
	c := m.Container
	c.SandboxID = m.sandbox
	if m.message == "" {
		return c
	}
	if c.Message != "" {
		c.Message += ": "
	}
	c.Message += m.message
	return c
}

// box is a sandbox, and when we first heard of it.
type box struct {
	pod.Sandbox
	learned time.Time
}

// record is what is known of one pod.
type record struct {
	ref        pod.Ref
	sandboxes  map[string]box
	containers map[string]member
	// verified is the start of the last complete reading: events from before it are old.
	verified time.Time
	view     pod.Observed
}

// sighting is news of one pod.
type sighting struct {
	ref pod.Ref
	// at: everything in it was so at this time or later.
	at         time.Time
	sandboxes  []pod.Sandbox
	containers []member
	// complete: it holds all of the pod, so that what it lacks is gone. Otherwise it
	// holds one sandbox and its containers.
	complete bool
}

func newRecord(ref pod.Ref) *record {
	return &record{ref: ref, sandboxes: map[string]box{}, containers: map[string]member{}}
}

// merge brings the record up to the sighting. gone holds ids that must not return, and
// gets those found missing. It reports whether the view changed, and whether the sighting
// left something out that is not known to be gone, so that the pod must be read.
func (r *record) merge(s sighting, now time.Time, gone map[string]time.Time) (changed, doubtful bool) {
	seen := map[string]bool{}
	newer := !s.at.Before(r.view.At)
	for _, sandbox := range s.sandboxes {
		seen[sandbox.ID] = true
		r.mergeSandbox(sandbox, now, newer, gone)
	}
	for _, c := range s.containers {
		seen[c.ID] = true
		r.mergeContainer(c, now, newer, gone)
	}
	if s.complete {
		r.dropUnseen(seen, s.at, now, gone)
		if s.at.After(r.verified) {
			r.verified = s.at
		}
	} else {
		doubtful = r.lacks(s, seen)
	}
	return r.rebuild(s.at), doubtful
}

func (r *record) mergeSandbox(sandbox pod.Sandbox, now time.Time, newer bool, gone map[string]time.Time) {
	if _, dead := gone[sandbox.ID]; dead {
		return
	}
	known, ok := r.sandboxes[sandbox.ID]
	if !ok {
		known.learned = now
	} else if forward := known.Ready && !sandbox.Ready; !forward && (!newer || known.Ready != sandbox.Ready) {
		return
	}
	r.sandboxes[sandbox.ID] = box{Sandbox: sandbox, learned: known.learned}
}

func (r *record) mergeContainer(c member, now time.Time, newer bool, gone map[string]time.Time) {
	if _, dead := gone[c.ID]; dead {
		return
	}
	known, ok := r.containers[c.ID]
	if !ok {
		known.learned = now
	} else if before, after := progress(known.State), progress(c.State); after < before || after == before && !newer {
		return
	}
	c.learned = known.learned
	r.containers[c.ID] = c
}

// progress orders states by how far a container has come. Unknown stands beside running:
// a runtime says it of containers it lost sight of, which may be found again.
func progress(s pod.ContainerState) int {
	switch s {
	case pod.Created:
		return 0
	case pod.Exited:
		return 2
	}
	return 1
}

// dropUnseen removes what a complete reading did not find, unless we heard of it only
// after the reading began.
func (r *record) dropUnseen(seen map[string]bool, readingBegan, now time.Time, gone map[string]time.Time) {
	for id, b := range r.sandboxes {
		if !seen[id] && b.learned.Before(readingBegan) {
			delete(r.sandboxes, id)
			gone[id] = now
		}
	}
	for id, c := range r.containers {
		if !seen[id] && c.learned.Before(readingBegan) {
			delete(r.containers, id)
			gone[id] = now
		}
	}
}

// lacks reports whether the sighting of one sandbox is silent about one of its
// containers. It may have been removed, or be too new for an event that was late.
func (r *record) lacks(s sighting, seen map[string]bool) bool {
	for _, sandbox := range s.sandboxes {
		for id, c := range r.containers {
			if c.sandbox == sandbox.ID && !seen[id] {
				return true
			}
		}
	}
	return false
}

// remove forgets a container or a sandbox. It reports whether the view changed, and whether
// the sandbox leaves containers, so that the pod must be read: most went with it, but one
// that was in the making may have come too late for that.
func (r *record) remove(id string, now time.Time, gone map[string]time.Time) (changed, doubtful bool) {
	gone[id] = now
	delete(r.containers, id)
	if _, ok := r.sandboxes[id]; ok {
		delete(r.sandboxes, id)
		for _, c := range r.containers {
			doubtful = doubtful || c.sandbox == id
		}
	}
	return r.rebuild(r.view.At), doubtful
}

// rebuild makes the view anew: views are handed out and must not change under a reader.
func (r *record) rebuild(at time.Time) (changed bool) {
	view := pod.Observed{Ref: r.ref, At: r.view.At}
	if at.After(view.At) {
		view.At = at
	}
	for _, id := range slices.Sorted(maps.Keys(r.sandboxes)) { // by id, so that ties keep their order
		view.Sandboxes = append(view.Sandboxes, r.sandboxes[id].Sandbox)
	}
	for _, id := range slices.Sorted(maps.Keys(r.containers)) {
		view.Containers = append(view.Containers, r.containers[id].shown())
	}
	view.Sort()
	changed = !reflect.DeepEqual(view.Sandboxes, r.view.Sandboxes) || !reflect.DeepEqual(view.Containers, r.view.Containers)
	r.view = view
	return changed
}

func (r *record) empty() bool { return len(r.sandboxes) == 0 && len(r.containers) == 0 }
