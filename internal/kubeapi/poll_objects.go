package kubeapi

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// poll replaces watches: at each interval it reads every object in use, and notifies
// subscribers of those that differ from what was served.
func (o *Objects) poll(ctx context.Context) {
	ticker := o.deps.Clock.NewTicker(o.cfg.Poll)
	defer ticker.Stop()
	last := o.deps.Clock.Now()
	for {
		var now time.Time
		select {
		case <-ctx.Done():
			return
		case now = <-ticker.C():
		}
		if !o.pollDue(now.Sub(last)) {
			continue
		}
		last = now
		for _, item := range o.inUse() {
			o.refresh(ctx, item)
		}
	}
}

// pollDue reports whether a round is due so long after the last one. With StrategyCache that is at the
// tick next to the TTL, which may have changed since.
func (o *Objects) pollDue(elapsed time.Duration) bool {
	return o.cfg.Strategy != StrategyCache || elapsed > o.cfg.TTL()-o.cfg.Poll/2
}

func (o *Objects) inUse() []*object {
	o.mu.Lock()
	defer o.mu.Unlock()
	items := make([]*object, 0, len(o.items))
	for _, item := range o.items {
		items = append(items, item)
	}
	return items
}

func (o *Objects) refresh(ctx context.Context, item *object) {
	item.mu.Lock()
	skip := !item.wasServed || (item.value != nil && immutable(item.value))
	item.mu.Unlock()
	if skip {
		return
	}
	got, err := o.fetch(ctx, item.ref)
	if err != nil && !apierrors.IsNotFound(err) {
		return // the next round tries again
	}
	item.setPolled(got, o.deps.Clock.Now())
}
