package kubeapi

import (
	"context"
	"time"
)

// maxWatches limits the watches for one pod. Each costs a stream of the API server's and tens of kilobytes, and all
// pods share the rate of requests by which they start: a pod that names thousands of objects, which need not exist,
// would use up both. Its other objects are read when they are used, and checked for changes one after the other.
const maxWatches = 64

// pollUnwatched checks the objects without a watch for changes, until ctx is done. It waits for the first one.
func (o *Objects) pollUnwatched(ctx context.Context) {
	var next time.Time // zero while all objects are watched
	for ctx.Err() == nil {
		var due <-chan time.Time
		stop := func() bool { return false }
		if len(o.unwatchedInUse()) == 0 {
			next = time.Time{}
		} else {
			now := o.deps.Clock.Now()
			if next.IsZero() {
				next = now.Add(o.cfg.Poll)
			}
			timer := o.deps.Clock.NewTimer(next.Sub(now))
			due, stop = timer.C(), timer.Stop
		}
		select {
		case <-ctx.Done():
		case <-o.unwatched:
		case <-due:
			for _, item := range o.unwatchedInUse() {
				o.refresh(ctx, item)
			}
			next = time.Time{}
		}
		stop()
	}
}

func (o *Objects) unwatchedInUse() []*object {
	o.mu.Lock()
	defer o.mu.Unlock()
	var items []*object
	for _, item := range o.items {
		if item.unwatched {
			items = append(items, item)
		}
	}
	return items
}
