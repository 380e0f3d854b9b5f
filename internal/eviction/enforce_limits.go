package eviction

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// enforceLimits has pods measured now and then that have limits on local storage, and evicts
// those that exceed them.
func (e *Evictor) enforceLimits(ctx context.Context, now time.Time) {
	if !e.cfg.Limits || e.limiting || now.Before(e.limitsDue) {
		return
	}
	e.limitsDue = now.Add(period)
	pods := slices.DeleteFunc(e.deps.Pods.Active(), func(p *v1.Pod) bool { return !bounded(p) || !e.mayGo(p) })
	if len(pods) == 0 {
		return
	}
	uids := make([]types.UID, len(pods))
	for i, p := range pods {
		uids[i] = p.UID
	}
	e.limiting = true
	e.aside(ctx, func() func() {
		measured, err := e.deps.Stats.Storage(ctx, uids, period)
		return func() {
			e.limiting = false
			if err != nil {
				e.log.Warn("limits on local storage are not enforced", "err", err)
				return
			}
			e.evictBeyondLimits(ctx, pods, usagesOf(measured))
		}
	})
}

func (e *Evictor) evictBeyondLimits(ctx context.Context, pods []*v1.Pod, used usages) {
	for _, p := range pods {
		u := used[p.UID]
		if u == nil {
			continue
		}
		if over := exceeded(p, u, e.layoutOf()); over != nil {
			home, _ := e.layoutOf().home()
			e.evict(ctx, victim{pod: p, grace: hardGrace, blame: blame{message: over.message}, counted: over.counted,
				frees: []Signal{NodeFsAvailable, home}})
		}
	}
}
