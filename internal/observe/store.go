package observe

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// store merges a sighting into what is known and announces the change. It reports
// whether the pod must be read to be sure of it.
func (o *Observer) store(s sighting) (doubtful bool) {
	o.addMessages(s)
	now := o.clock.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	r, known := o.pods[s.ref.UID]
	if !known {
		r = newRecord(s.ref)
	}
	if s.complete {
		delete(o.unread, s.ref.UID)
	}
	changed, doubtful := r.merge(s, now, o.gone)
	o.keep(r, changed)
	return doubtful
}

// forget takes an object out of a pod, because the runtime said that it removed it. It
// reports whether the pod must be read to be sure of the rest.
func (o *Observer) forget(uid types.UID, id string) (doubtful bool) {
	now := o.clock.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone[id] = now
	if r, known := o.pods[uid]; known {
		var changed bool
		changed, doubtful = r.remove(id, now, o.gone)
		o.keep(r, changed)
	}
	return doubtful
}

// keep puts a record back after a change; the caller holds mu. A record with nothing in
// it goes, and that is a change too.
func (o *Observer) keep(r *record, changed bool) {
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

// ownerOf finds whose the sandbox or container is; the caller holds mu.
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

// addMessages completes the exited containers of a sighting with the messages they left.
// Reading is done without the lock, and once per container.
func (o *Observer) addMessages(s sighting) {
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
		message = sync.OnceValue(func() string { return o.read(ref, &c) })
		o.messages[c.ID] = message
	}
	return message
}

// verified notes that a relist begun at the given time found the pod as it is known.
func (o *Observer) verified(uid types.UID, began time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, ok := o.pods[uid]; ok && began.After(r.verified) {
		r.verified = began
	}
}

// tidy drops what a relist made superfluous; began is the start of the one before it, so
// that events underway when the last began are still recognised.
func (o *Observer) tidy(began time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.gone, func(_ string, at time.Time) bool { return at.Before(began) })
	live := map[string]bool{}
	for _, r := range o.pods {
		for id := range r.containers {
			live[id] = true
		}
	}
	maps.DeleteFunc(o.messages, func(id string, _ func() string) bool { return !live[id] })
}
