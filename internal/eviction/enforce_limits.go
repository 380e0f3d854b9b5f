package eviction

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// enforceLimits evicts pods that exceed their own limits on local storage, and reports
// whether there were any.
func (e *Evictor) enforceLimits(ctx context.Context, now time.Time) bool {
	if !e.cfg.Limits || now.Before(e.limitsDue) {
		return false
	}
	e.limitsDue = now.Add(period)
	pods := slices.DeleteFunc(e.deps.Pods.Active(), func(p *v1.Pod) bool { return !bounded(p) || pod.IsCritical(p) })
	if len(pods) == 0 {
		return false
	}
	uids := make([]types.UID, len(pods))
	for i, p := range pods {
		uids[i] = p.UID
	}
	measured, err := e.deps.Stats.Storage(ctx, uids, period)
	if err != nil {
		e.log.Warn("limits on local storage are not enforced", "err", err)
		return false
	}
	used := usagesOf(measured)
	var victims []victim
	for _, p := range pods {
		if u := used[p.UID]; u != nil {
			if over := exceeded(p, u, e.layoutOf()); over != nil {
				victims = append(victims, victim{pod: p, grace: hardGrace, blame: blame{message: over.message}, counted: over.counted})
			}
		}
	}
	return len(victims) > 0 && e.evict(ctx, victims)
}
