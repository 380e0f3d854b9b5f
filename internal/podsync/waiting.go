package podsync

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// waitings remembers why containers are not running, until they are.
type waitings struct {
	mu  sync.Mutex
	why map[types.UID]map[string]pod.Waiting
}

func (w *waitings) set(uid types.UID, container string, why pod.Waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why == nil {
		w.why = map[types.UID]map[string]pod.Waiting{}
	}
	if w.why[uid] == nil {
		w.why[uid] = map[string]pod.Waiting{}
	}
	w.why[uid][container] = why
}

func (w *waitings) clear(uid types.UID, container string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.why[uid], container)
}

func (w *waitings) of(uid types.UID) map[string]pod.Waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.why[uid])
}

func (w *waitings) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.why, uid)
}
