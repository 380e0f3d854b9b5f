package volume

import (
	"container/heap"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// volumeKey identifies one volume of one pod, or its size or health check, which have their own times.
type volumeKey struct {
	pod          types.UID
	volume       string
	size, health bool
}

// refreshSchedule has at most one time per key, the earliest first: one heap instead of a timer per
// volume.
type refreshSchedule struct {
	heap entries
	at   map[volumeKey]*entry
}

type entry struct {
	key   volumeKey
	at    time.Time
	index int
}

// set replaces the time of the key.
func (t *refreshSchedule) set(key volumeKey, at time.Time) {
	if e := t.at[key]; e != nil {
		e.at = at
		heap.Fix(&t.heap, e.index)
		return
	}
	if t.at == nil {
		t.at = map[volumeKey]*entry{}
	}
	e := &entry{key: key, at: at}
	t.at[key] = e
	heap.Push(&t.heap, e)
}

func (t *refreshSchedule) remove(key volumeKey) {
	if e := t.at[key]; e != nil {
		heap.Remove(&t.heap, e.index)
		delete(t.at, key)
	}
}

func (t *refreshSchedule) first() (time.Time, bool) {
	if len(t.heap) == 0 {
		return time.Time{}, false
	}
	return t.heap[0].at, true
}

// popDue removes and returns the keys that are due.
func (t *refreshSchedule) popDue(now time.Time) []volumeKey {
	var due []volumeKey
	for len(t.heap) > 0 && !t.heap[0].at.After(now) {
		e := heap.Pop(&t.heap).(*entry)
		delete(t.at, e.key)
		due = append(due, e.key)
	}
	return due
}

type entries []*entry

func (h entries) Len() int           { return len(h) }
func (h entries) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h entries) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *entries) Push(x any) {
	e := x.(*entry)
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *entries) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
