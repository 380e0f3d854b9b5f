package observe

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// changes is a queue in which each pod stands at most once. Adding never blocks, however
// slow the reader: the runtime itself waits for whoever reads its events.
type changes struct {
	out  chan types.UID
	wake chan struct{}

	mu      sync.Mutex
	queue   []types.UID
	waiting map[types.UID]bool
}

func newChanges() *changes {
	return &changes{out: make(chan types.UID), wake: make(chan struct{}, 1), waiting: map[types.UID]bool{}}
}

func (c *changes) add(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[uid] {
		return
	}
	c.waiting[uid] = true
	c.queue = append(c.queue, uid)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// next takes the first pod. It no longer counts as waiting from here on, before it is
// delivered: a change that comes while it is in hand queues it again, which may wake a
// reader once too often but never once too few.
func (c *changes) next() (types.UID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return "", false
	}
	uid := c.queue[0]
	c.queue = c.queue[1:]
	delete(c.waiting, uid)
	return uid, true
}

func (c *changes) run(ctx context.Context) {
	for {
		uid, ok := c.next()
		if !ok {
			select {
			case <-c.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		select {
		case c.out <- uid:
		case <-ctx.Done():
			return
		}
	}
}
