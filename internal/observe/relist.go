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

// listed is what the runtime's lists hold of one pod.
type listed struct {
	ref        pod.Ref
	sandboxes  []*runtimeapi.PodSandbox
	containers []*runtimeapi.Container
}

// relistForever lists everything now and then until ctx is done.
func (o *Observer) relistForever(ctx context.Context) {
	var last time.Time
	first := true
	for ctx.Err() == nil {
		began := o.clock.Now()
		o.health.begin(began)
		if !last.IsZero() {
			o.meters.Interval.Took(began.Sub(last))
		}
		started, err := o.relist(ctx, began)
		o.meters.Relist.Took(o.clock.Since(began))
		if o.health.end(o.clock.Now(), err) {
			o.disturb()
		}
		if err != nil {
			if ctx.Err() == nil {
				o.log.Warn("cannot list what the runtime holds", "err", err)
			}
		} else {
			if first {
				o.awaitFirst(ctx, started)
				close(o.synced)
				first = false
			}
			o.tidy(last)
			last = began
		}
		timer := o.clock.NewTimer(o.pause(err))
		select {
		case <-timer.C():
		case <-o.relistNow:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// pause is how long the state just listed is good for.
func (o *Observer) pause(err error) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil || !o.streaming || o.settling {
		o.settling = o.settling && err != nil
		return o.cfg.PollPeriod
	}
	return o.cfg.RelistPeriod
}

// awaitFirst waits until the pods found by the first relist were read. One that hangs
// does not keep the others from starting.
func (o *Observer) awaitFirst(ctx context.Context, started *sync.WaitGroup) {
	done := make(chan struct{})
	o.inspections.Go(func() { started.Wait(); close(done) })
	select {
	case <-done:
	case <-o.clock.After(o.cfg.FirstWait):
		o.log.Warn("the runtime is slow to tell of some pods, starting without them")
	case <-ctx.Done():
	}
}

// relist lists everything and has those pods read whose list differs from what is known:
// two calls when nothing changed. The readings it started may outlast it.
func (o *Observer) relist(ctx context.Context, began time.Time) (started *sync.WaitGroup, err error) {
	all, err := o.list(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("relist: %w", err)
	}
	o.noteUnread(all)
	started = &sync.WaitGroup{}
	for uid, l := range all {
		if o.matches(l) {
			o.verified(uid, began)
		} else {
			o.inspectListed(ctx, l, began, started)
		}
	}
	for _, ref := range o.missingFrom(all) {
		o.store(sighting{ref: ref, at: began, complete: true})
	}
	o.mu.Lock()
	o.floor = began
	o.mu.Unlock()
	return started, nil
}

// noteUnread remembers the pods of which only the lists are known.
func (o *Observer) noteUnread(all map[types.UID]*listed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.unread)
	for uid := range all {
		if _, known := o.pods[uid]; !known {
			o.unread[uid] = true
		}
	}
}

// list asks for the sandboxes and containers of one pod, or of all, grouped by pod.
// Objects that belong to no pod are not ours.
func (o *Observer) list(ctx context.Context, uid types.UID) (map[types.UID]*listed, error) {
	var selector map[string]string
	if uid != "" {
		selector = map[string]string{cri.LabelPodUID: string(uid)}
	}
	sandboxes, err := o.runtime.ListPodSandboxes(ctx, &runtimeapi.PodSandboxFilter{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	containers, err := o.runtime.ListContainers(ctx, &runtimeapi.ContainerFilter{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	all := map[types.UID]*listed{}
	of := func(labels map[string]string) *listed {
		ref, ok := cri.RefFrom(labels)
		if !ok {
			return &listed{} // nobody's: dropped
		}
		if all[ref.UID] == nil {
			all[ref.UID] = &listed{ref: ref}
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

// matches reports whether the lists show the pod as it is known.
func (o *Observer) matches(l *listed) bool {
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

// missingFrom names the known pods of which the lists hold nothing.
func (o *Observer) missingFrom(all map[types.UID]*listed) []pod.Ref {
	o.mu.Lock()
	defer o.mu.Unlock()
	var missing []pod.Ref
	for uid, r := range o.pods {
		if all[uid] == nil {
			missing = append(missing, r.ref)
		}
	}
	return missing
}
