package eviction

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/pod"
)

// limitCheck is the state of the checks of pods against their own limits.
type limitCheck struct {
	next      time.Time
	measuring bool // pods with limits are being measured
}

// enforceLimits measures, once per period, the pods with limits on local storage, and evicts
// those that exceed them.
func (e *Evictor) enforceLimits(ctx context.Context, now time.Time) {
	if !e.cfg.EnforceStorageLimits || e.limitCheck.measuring || now.Before(e.limitCheck.next) {
		return
	}
	e.limitCheck.next = now.Add(period)
	pods := slices.DeleteFunc(e.deps.Pods.Active(), func(p *v1.Pod) bool { return !hasStorageLimit(p) || !e.evictable(p) })
	if len(pods) == 0 {
		return
	}
	uids := make([]types.UID, len(pods))
	for i, p := range pods {
		uids[i] = p.UID
	}
	e.limitCheck.measuring = true
	e.runInBackground(ctx, func() func() {
		var measured []statsapi.PodStats
		err := e.deps.Panics.Call("eviction", func() (err error) {
			measured, err = e.deps.Stats.Storage(ctx, uids, period)
			return err
		})
		return func() {
			e.limitCheck.measuring = false
			if err != nil {
				e.log.Warn("enforce local storage limits: read usage failed", "err", err)
				return
			}
			e.evictBeyondLimits(ctx, pods, indexByUID(measured))
		}
	})
}

func (e *Evictor) evictBeyondLimits(ctx context.Context, pods []*v1.Pod, used podUsage) {
	for _, p := range pods {
		u := used[p.UID]
		if u == nil {
			continue
		}
		e.contained(func() { e.evictBeyondLimit(ctx, p, u) }, pod.RefOf(p).Attr())
	}
}

func (e *Evictor) evictBeyondLimit(ctx context.Context, p *v1.Pod, used *statsapi.PodStats) {
	violation := exceededLimit(p, used, e.currentLayout())
	if violation == nil {
		return
	}
	containerFs, _ := e.currentLayout().containerFs()
	e.evict(ctx, victim{pod: p, grace: hardGrace, explanation: explanation{message: violation.message}, label: violation.label,
		reclaims: []Signal{NodeFsAvailable, containerFs}})
}
