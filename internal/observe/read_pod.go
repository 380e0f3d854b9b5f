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

// exitSettleTime is the time after which the status of an exited container is final. A runtime
// may notice an OOM kill only after it has reported the exit.
const exitSettleTime = 10 * time.Second

// Refresh reads one pod from the runtime now. A pod's worker calls it after its own actions: the
// result is at least as new as the call. For a pod that is not in the runtime, it returns an
// Observed with only the UID and the time.
func (o *Observer) Refresh(ctx context.Context, uid types.UID) (pod.Observed, error) {
	began := o.deps.Clock.Now()
	if err := o.readPod(ctx, pod.Ref{UID: uid}, began); err != nil {
		return pod.Observed{}, fmt.Errorf("refresh pod %s: %w", uid, err)
	}
	if seen, ok := o.Get(uid); ok {
		return seen, nil
	}
	return pod.Observed{Ref: pod.Ref{UID: uid}, At: began}, nil
}

// readPod lists one pod and reads the objects that may have changed.
func (o *Observer) readPod(ctx context.Context, ref pod.Ref, began time.Time) error {
	defer func() { o.deps.Meters.PodRead.Took(o.deps.Clock.Since(began)) }()
	all, err := o.list(ctx, ref.UID)
	if err != nil {
		return err
	}
	l := all[ref.UID]
	if l == nil {
		l = &podListing{ref: ref}
	}
	s, err := o.readListed(ctx, l, began)
	if err != nil {
		return err
	}
	o.store(s)
	return nil
}

// readInBackground reads a pod after an event with too little content. The event handler uses
// nothing else to call the runtime, so that it never blocks.
func (o *Observer) readInBackground(ctx context.Context, ref pod.Ref) {
	o.startRead(ctx, ref, nil, func() error { return o.readPod(ctx, ref, o.deps.Clock.Now()) })
}

// readListedInBackground reads a pod that is listed already.
func (o *Observer) readListedInBackground(ctx context.Context, l *podListing, began time.Time, started *sync.WaitGroup) {
	o.startRead(ctx, l.ref, started, func() error {
		s, err := o.readListed(ctx, l, began)
		if err != nil {
			return err
		}
		o.store(s)
		return nil
	})
}

// startRead reads a pod in a goroutine of its own, so that one that hangs does not delay other
// pods. While a read is in progress, it starts no second one but repeats the first.
func (o *Observer) startRead(ctx context.Context, ref pod.Ref, started *sync.WaitGroup, read func() error) {
	o.mu.Lock()
	_, inProgress := o.reading[ref.UID]
	o.reading[ref.UID] = inProgress
	o.mu.Unlock()
	if inProgress {
		return
	}
	if started != nil {
		started.Add(1)
	}
	o.readers.Go(func() {
		err := o.deps.Panics.Call("pleg", read, ref.Attr())
		for o.readAgain(ref.UID) {
			err = o.deps.Panics.Call("pleg", func() error { return o.readPod(ctx, ref, o.deps.Clock.Now()) }, ref.Attr())
		}
		if started != nil {
			started.Done()
		}
		if err != nil && ctx.Err() == nil {
			o.deps.Log.Warn("pleg: read pod from runtime failed", ref.Attr(), "err", err)
			select {
			case <-o.deps.Clock.After(o.cfg.PollPeriod):
				o.relistNow.Notify() // a relist finds the difference and reads the pod again
			case <-ctx.Done():
			}
		}
	})
}

// readAgain reports whether the read that just ended must be repeated; if not, it marks it as
// done.
func (o *Observer) readAgain(uid types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	again := o.reading[uid]
	if again {
		o.reading[uid] = false
	} else {
		delete(o.reading, uid)
	}
	return again
}

// readListed reads the listed objects, as far as they can have changed. It skips those that were
// removed since.
func (o *Observer) readListed(ctx context.Context, l *podListing, began time.Time) (observation, error) {
	s := observation{ref: l.ref, at: began, complete: true}
	for _, item := range l.sandboxes {
		sandbox, err := o.readSandbox(ctx, l.ref.UID, item)
		if cri.IsNotFound(err) {
			continue
		}
		if err != nil {
			return observation{}, err
		}
		s.sandboxes = append(s.sandboxes, sandbox)
	}
	for _, item := range l.containers {
		c, err := o.readContainer(ctx, l.ref.UID, item)
		if cri.IsNotFound(err) {
			continue
		}
		if err != nil {
			return observation{}, err
		}
		s.containers = append(s.containers, containerEntry{Container: c, sandbox: item.PodSandboxId})
	}
	return s, o.confirmMissing(ctx, l, began)
}

// readSandbox reads a sandbox, unless its record has the listed state and, while it is ready,
// its IPs, which do not change.
func (o *Observer) readSandbox(ctx context.Context, uid types.UID, item *runtimeapi.PodSandbox) (pod.Sandbox, error) {
	o.mu.Lock()
	var known sandboxEntry
	if r, ok := o.pods[uid]; ok && r.sandboxes[item.Id] != nil {
		known = *r.sandboxes[item.Id]
	}
	o.mu.Unlock()
	if known.ID != "" && known.Ready == isReady(item) && (known.HostNetwork || known.Ready == (len(known.IPs) > 0)) {
		return known.Sandbox, nil
	}
	response, err := o.deps.Runtime.PodSandboxStatus(ctx, item.Id, false)
	if err != nil {
		return pod.Sandbox{}, err
	}
	return cri.SandboxFrom(response.Status), nil
}

// readContainer reads a container, unless it was seen to have exited longer than exitSettleTime ago.
func (o *Observer) readContainer(ctx context.Context, uid types.UID, item *runtimeapi.Container) (pod.Container, error) {
	o.mu.Lock()
	var known containerEntry
	if r, ok := o.pods[uid]; ok {
		known = r.containers[item.Id]
	}
	o.mu.Unlock()
	if known.State == pod.Exited && o.deps.Clock.Since(known.exitSeen) > exitSettleTime {
		return known.Container, nil
	}
	response, err := o.deps.Runtime.ContainerStatus(ctx, item.Id, false)
	if err != nil {
		return pod.Container{}, err
	}
	return cri.ContainerFrom(response.Status), nil
}
