package volume

import (
	"container/heap"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// volumeKey names one volume of one pod, or its size or health, which are looked at on their
// own.
type volumeKey struct {
	pod          types.UID
	volume       string
	size, health bool
}

// timetable holds at most one moment per volume, the earliest first. One heap for all
// replaces a timer per token.
type timetable struct {
	heap entries
	at   map[volumeKey]*entry
}

type entry struct {
	key   volumeKey
	at    time.Time
	index int
}

// set replaces the volume's moment.
func (t *timetable) set(key volumeKey, at time.Time) {
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

func (t *timetable) remove(key volumeKey) {
	if e := t.at[key]; e != nil {
		heap.Remove(&t.heap, e.index)
		delete(t.at, key)
	}
}

func (t *timetable) first() (time.Time, bool) {
	if len(t.heap) == 0 {
		return time.Time{}, false
	}
	return t.heap[0].at, true
}

// take removes and returns what is due.
func (t *timetable) take(now time.Time) []volumeKey {
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
