package observe

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"swiftlet/internal/pod"
)

// containerEntry is a container with its sandbox, its termination message, and when it was first
// observed, and observed as exited.
type containerEntry struct {
	pod.Container
	sandbox   string
	message   string
	firstSeen time.Time
	exitSeen  time.Time // when it was first observed as exited
}

// withMessage is the container with its termination message after the runtime's message.
func (m containerEntry) withMessage() pod.Container {
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

// sandboxEntry is a sandbox, and when it was first observed.
type sandboxEntry struct {
	pod.Sandbox
	firstSeen time.Time
}

// record is the observed state of one pod.
type record struct {
	ref        pod.Ref
	sandboxes  map[string]*sandboxEntry // by pointer, as even the smallest map has room for eight values
	containers map[string]containerEntry
	// verified is the start of the last complete read: events from before it are stale.
	verified time.Time
	view     pod.Observed
}

// observation is new state of one pod.
type observation struct {
	ref pod.Ref
	// at: the state is from this time or later.
	at         time.Time
	sandboxes  []pod.Sandbox
	containers []containerEntry
	// complete: it has all objects of the pod, so that missing ones are removed. Otherwise it
	// has one sandbox and its containers.
	complete bool
}

func newRecord(ref pod.Ref) *record {
	return &record{ref: ref, sandboxes: map[string]*sandboxEntry{}, containers: map[string]containerEntry{}}
}

// merge merges an observation. removed holds IDs that must not return; merge adds those that are
// missing. It reports whether the view changed, and whether the observation omits an object that
// may still exist, so that the pod must be read.
func (r *record) merge(s observation, now time.Time, removed map[string]time.Time) (changed, needsRead bool) {
	seen := map[string]bool{}
	newer := !s.at.Before(r.view.At)
	for _, sandbox := range s.sandboxes {
		seen[sandbox.ID] = true
		r.mergeSandbox(sandbox, now, newer, removed)
	}
	for _, c := range s.containers {
		seen[c.ID] = true
		r.mergeContainer(c, now, newer, removed)
	}
	if s.complete {
		r.dropMissing(seen, s.at, now, removed)
		if s.at.After(r.verified) {
			r.verified = s.at
		}
	} else {
		needsRead = r.omitsKnown(s, seen)
	}
	return r.rebuild(s.at), needsRead
}

func (r *record) mergeSandbox(sandbox pod.Sandbox, now time.Time, newer bool, removed map[string]time.Time) {
	if _, dead := removed[sandbox.ID]; dead {
		return
	}
	firstSeen := now
	if known := r.sandboxes[sandbox.ID]; known != nil {
		if forward := known.Ready && !sandbox.Ready; !forward && (!newer || known.Ready != sandbox.Ready) {
			return
		}
		firstSeen = known.firstSeen
	}
	r.sandboxes[sandbox.ID] = &sandboxEntry{Sandbox: sandbox, firstSeen: firstSeen}
}

func (r *record) mergeContainer(c containerEntry, now time.Time, newer bool, removed map[string]time.Time) {
	if _, dead := removed[c.ID]; dead {
		return
	}
	known, ok := r.containers[c.ID]
	if !ok {
		known.firstSeen = now
	} else if before, after := progress(known.State), progress(c.State); after < before || after == before && !newer {
		return
	}
	c.firstSeen, c.exitSeen = known.firstSeen, known.exitSeen
	if c.State == pod.Exited && c.exitSeen.IsZero() {
		c.exitSeen = now
	}
	r.containers[c.ID] = c
}

// progress orders the states of a container's lifecycle. Unknown equals running: a runtime
// reports it for containers that it may find again.
func progress(s pod.ContainerState) int {
	switch s {
	case pod.Created:
		return 0
	case pod.Exited:
		return 2
	}
	return 1
}

// dropMissing removes what a complete read did not find, unless it was first observed after the
// read began.
func (r *record) dropMissing(seen map[string]bool, readBegan, now time.Time, removed map[string]time.Time) {
	for id, b := range r.sandboxes {
		if !seen[id] && b.firstSeen.Before(readBegan) {
			delete(r.sandboxes, id)
			removed[id] = now
		}
	}
	for id, c := range r.containers {
		if !seen[id] && c.firstSeen.Before(readBegan) {
			delete(r.containers, id)
			removed[id] = now
		}
	}
}

// omitsKnown reports whether the observation of a sandbox omits one of its known containers. The
// container may have been removed, or be newer than a late event.
func (r *record) omitsKnown(s observation, seen map[string]bool) bool {
	for _, sandbox := range s.sandboxes {
		for id, c := range r.containers {
			if c.sandbox == sandbox.ID && !seen[id] {
				return true
			}
		}
	}
	return false
}

// remove removes a container or a sandbox. It reports whether the view changed, and whether the
// sandbox has known containers, so that the pod must be read: most were removed with it, but one
// that was being created may still exist.
func (r *record) remove(id string, now time.Time, removed map[string]time.Time) (changed, needsRead bool) {
	removed[id] = now
	delete(r.containers, id)
	if _, ok := r.sandboxes[id]; ok {
		delete(r.sandboxes, id)
		for _, c := range r.containers {
			needsRead = needsRead || c.sandbox == id
		}
	}
	return r.rebuild(r.view.At), needsRead
}

// rebuild builds a new view: callers hold the old one, which must not change.
func (r *record) rebuild(at time.Time) (changed bool) {
	view := pod.Observed{Ref: r.ref, At: r.view.At}
	if at.After(view.At) {
		view.At = at
	}
	for _, id := range slices.Sorted(maps.Keys(r.sandboxes)) { // by ID, for a stable order
		view.Sandboxes = append(view.Sandboxes, r.sandboxes[id].Sandbox)
	}
	for _, id := range slices.Sorted(maps.Keys(r.containers)) {
		view.Containers = append(view.Containers, r.containers[id].withMessage())
	}
	view.Sort()
	if reflect.DeepEqual(view.Sandboxes, r.view.Sandboxes) && reflect.DeepEqual(view.Containers, r.view.Containers) {
		r.view.At = view.At
		return false
	}
	r.view = view
	return true
}

func (r *record) empty() bool { return len(r.sandboxes) == 0 && len(r.containers) == 0 }
