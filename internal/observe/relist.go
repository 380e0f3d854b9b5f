package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
)

// podListing is the listed objects of one pod.
type podListing struct {
	ref        pod.Ref
	sandboxes  []*runtimeapi.PodSandbox
	containers []*runtimeapi.Container
}

// relistLoop relists periodically and on demand until ctx is done.
func (o *Observer) relistLoop(ctx context.Context) {
	var last time.Time
	failing := failingWarner{o: o}
	first := true
	for ctx.Err() == nil {
		began := o.deps.Clock.Now()
		o.health.start(began)
		if !last.IsZero() {
			o.deps.Meters.Interval.Took(began.Sub(last))
		}
		started, err := o.relist(ctx, began)
		o.deps.Meters.Relist.Took(o.deps.Clock.Since(began))
		if o.health.finish(o.deps.Clock.Now(), err) {
			o.deps.HealthChanged()
		}
		if err != nil {
			if ctx.Err() == nil {
				o.deps.Log.Warn("pleg: relist failed", "err", err)
				failing.failed(err)
			}
		} else {
			if first {
				o.waitForFirstReads(ctx, started)
				close(o.synced)
				first = false
			}
			o.prune(last)
			last = began
		}
		timer := o.deps.Clock.NewTimer(o.nextRelist(err))
		select {
		case <-timer.C():
		case <-o.relistNow:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// nextRelist is the time until the next relist.
func (o *Observer) nextRelist(err error) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil || !o.streaming || o.justSubscribed {
		o.justSubscribed = o.justSubscribed && err != nil
		return o.cfg.PollPeriod
	}
	return o.cfg.RelistPeriod
}

// waitForFirstReads waits until the pods of the first relist have been read. The wait is
// bounded, so that one that hangs does not keep the others from starting.
func (o *Observer) waitForFirstReads(ctx context.Context, started *sync.WaitGroup) {
	done := make(chan struct{})
	o.readers.Go(func() { started.Wait(); close(done) })
	select {
	case <-done:
	case <-o.deps.Clock.After(o.cfg.FirstRelistTimeout):
		o.deps.Log.Warn("pleg: reading some pods takes long, starting without them")
	case <-ctx.Done():
	}
}

// relist lists all objects and starts to read the pods that differ from their record. It makes
// two calls if nothing has changed. The reads may outlast it.
func (o *Observer) relist(ctx context.Context, began time.Time) (started *sync.WaitGroup, err error) {
	all, err := o.list(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("relist: %w", err)
	}
	o.markUnread(all)
	started = &sync.WaitGroup{}
	for uid, l := range all {
		if o.matches(l) {
			o.verified(uid, began)
		} else {
			o.readListedInBackground(ctx, l, began, started)
		}
	}
	for _, ref := range o.missing(all) {
		o.readListedInBackground(ctx, &podListing{ref: ref}, began, started)
	}
	o.mu.Lock()
	o.ignoreBefore = began
	o.mu.Unlock()
	return started, nil
}

// markUnread records the pods that are listed and not read yet.
func (o *Observer) markUnread(all map[types.UID]*podListing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.unread)
	for uid := range all {
		if _, known := o.pods[uid]; !known {
			o.unread[uid] = true
		}
	}
}

// list lists the sandboxes and containers of one pod, or of all, by pod. It drops objects that
// belong to no pod.
func (o *Observer) list(ctx context.Context, uid types.UID) (map[types.UID]*podListing, error) {
	var selector map[string]string
	if uid != "" {
		selector = map[string]string{cri.LabelPodUID: string(uid)}
	}
	sandboxes, err := o.deps.Runtime.ListPodSandboxes(ctx, &runtimeapi.PodSandboxFilter{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	containers, err := o.deps.Runtime.ListContainers(ctx, &runtimeapi.ContainerFilter{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	all := map[types.UID]*podListing{}
	of := func(labels map[string]string) *podListing {
		ref, ok := cri.RefFrom(labels)
		if !ok {
			return &podListing{} // no pod: dropped
		}
		if all[ref.UID] == nil {
			all[ref.UID] = &podListing{ref: ref}
		}
		return all[ref.UID]
	}
	for _, s := range sandboxes {
		l := of(s.Labels)
		l.sandboxes = append(l.sandboxes, s)
	}
	for _, c := range containers {
		l := of(c.Labels)
		l.containers = append(l.containers, c)
	}
	return all, nil
}

// matches reports whether the listing equals the record of the pod.
func (o *Observer) matches(l *podListing) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, ok := o.pods[l.ref.UID]
	if !ok || len(r.sandboxes) != len(l.sandboxes) || len(r.containers) != len(l.containers) {
		return false
	}
	for _, s := range l.sandboxes {
		if known, ok := r.sandboxes[s.Id]; !ok || known.Ready != isReady(s) {
			return false
		}
	}
	for _, c := range l.containers {
		if known, ok := r.containers[c.Id]; !ok || known.State != cri.StateFrom(c.State) {
			return false
		}
	}
	return true
}

func isReady(s *runtimeapi.PodSandbox) bool {
	return s.State == runtimeapi.PodSandboxState_SANDBOX_READY
}

// missing returns the recorded pods that are not listed.
func (o *Observer) missing(all map[types.UID]*podListing) []pod.Ref {
	o.mu.Lock()
	defer o.mu.Unlock()
	var refs []pod.Ref
	for uid, r := range o.pods {
		if all[uid] == nil {
			refs = append(refs, r.ref)
		}
	}
	return refs
}
