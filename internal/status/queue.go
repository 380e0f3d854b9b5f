package status

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// queue orders the pods to write. A pod waits in it once however often it is added, and
// is with one worker at a time, so that its writes keep their order.
type queue struct {
	lock    *sync.Mutex // guards everything here; the owner's
	filled  *sync.Cond
	waiting []types.UID
	queued  map[types.UID]bool
	busy    map[types.UID]bool
	again   map[types.UID]bool // added while busy
}

func (q *queue) init(lock *sync.Mutex) {
	*q = queue{
		lock:   lock,
		filled: sync.NewCond(lock),
		queued: map[types.UID]bool{},
		busy:   map[types.UID]bool{},
		again:  map[types.UID]bool{},
	}
}

// add needs the lock.
func (q *queue) add(uid types.UID) {
	switch {
	case q.busy[uid]:
		q.again[uid] = true
	case !q.queued[uid]:
		q.queued[uid] = true
		q.waiting = append(q.waiting, uid)
		q.filled.Signal()
	}
}

// next blocks until there is a pod to write, or ctx is done. It needs the lock.
func (q *queue) next(ctx context.Context) (types.UID, bool) {
	for len(q.waiting) == 0 && ctx.Err() == nil {
		q.filled.Wait()
	}
	if ctx.Err() != nil {
		return "", false
	}
	uid := q.waiting[0]
	q.waiting = q.waiting[1:]
	delete(q.queued, uid)
	q.busy[uid] = true
	return uid, true
}

// done needs the lock.
func (q *queue) done(uid types.UID) {
	delete(q.busy, uid)
	if q.again[uid] {
		delete(q.again, uid)
		q.add(uid)
	}
}

// wake lets workers see that ctx is done.
func (q *queue) wake() {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.filled.Broadcast()
}
