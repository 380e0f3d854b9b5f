package observe

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// store merges an observation into the record of the pod and queues the change. It reports
// whether the pod must be read from the runtime.
func (o *Observer) store(s observation) (needsRead bool) {
	o.addMessages(s)
	before, after, needsRead := o.merge(s, o.deps.Clock.Now())
	o.logEvents(before, after)
	return needsRead
}

// merge unlocks also if the observation causes a panic, which its reader survives.
func (o *Observer) merge(s observation, now time.Time) (before, after pod.Observed, needsRead bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, known := o.pods[s.ref.UID]
	if !known {
		r = newRecord(s.ref)
	}
	if s.complete {
		delete(o.unread, s.ref.UID)
	}
	before = r.view
	changed, needsRead := r.merge(s, now, o.removed)
	o.save(r, changed)
	return before, r.view, needsRead
}

// removeObject removes a container or sandbox that the runtime has reported as deleted. It
// reports whether the pod must be read from the runtime.
func (o *Observer) removeObject(uid types.UID, id string) (needsRead bool) {
	before, after, needsRead := o.remove(uid, id, o.deps.Clock.Now())
	o.logEvents(before, after)
	return needsRead
}

func (o *Observer) remove(uid types.UID, id string, now time.Time) (before, after pod.Observed, needsRead bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.removed[id] = now
	r, known := o.pods[uid]
	if !known {
		return before, after, false
	}
	before = r.view
	changed, needsRead := r.remove(id, now, o.removed)
	o.save(r, changed)
	return before, r.view, needsRead
}

// save stores a record and queues the change; it deletes an empty record, which is a change as
// well. The caller holds mu.
func (o *Observer) save(r *record, changed bool) {
	if r.empty() {
		if _, known := o.pods[r.ref.UID]; known {
			delete(o.pods, r.ref.UID)
			o.changes.Add(r.ref.UID)
		}
		return
	}
	o.pods[r.ref.UID] = r
	if changed {
		o.changes.Add(r.ref.UID)
	}
}

// ownerOf returns the pod of a sandbox or container. The caller holds mu.
func (o *Observer) ownerOf(id string) (pod.Ref, bool) {
	for _, r := range o.pods {
		if _, ok := r.containers[id]; ok {
			return r.ref, true
		}
		if _, ok := r.sandboxes[id]; ok {
			return r.ref, true
		}
	}
	return pod.Ref{}, false
}

// addMessages adds the termination messages of exited containers. It reads each once, without
// holding mu.
func (o *Observer) addMessages(s observation) {
	for i := range s.containers {
		if c := &s.containers[i]; c.State == pod.Exited {
			c.message = o.messageOf(s.ref, c.Container)()
		}
	}
}

func (o *Observer) messageOf(ref pod.Ref, c pod.Container) func() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	message, ok := o.messages[c.ID]
	if !ok {
		message = sync.OnceValue(func() string { return o.deps.ReadMessage(ref, &c) })
		o.messages[c.ID] = message
	}
	return message
}

// verified records that a relist that began then found the pod unchanged.
func (o *Observer) verified(uid types.UID, began time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, ok := o.pods[uid]; ok && began.After(r.verified) {
		r.verified = began
	}
}

// prune drops what is not needed after a relist. began is the start of the previous one, so that
// events in flight when the last one began are still recognized as stale.
func (o *Observer) prune(began time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.removed, func(_ string, at time.Time) bool { return at.Before(began) })
	live := map[string]bool{}
	for _, r := range o.pods {
		for id := range r.containers {
			live[id] = true
		}
	}
	maps.DeleteFunc(o.messages, func(id string, _ func() string) bool { return !live[id] })
}
