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

// settled is the time after which nothing about an exited container changes any more. A
// runtime may learn that it was the kernel's OOM killer only after it reported the exit.
const settled = 10 * time.Second

// Refresh reads one pod from the runtime now. A pod's worker calls it after its own
// actions: what it returns is at least as new as the call. Of a pod of which the runtime
// holds nothing it returns an Observed with only the UID and the time.
func (o *Observer) Refresh(ctx context.Context, uid types.UID) (pod.Observed, error) {
	began := o.clock.Now()
	if err := o.readPod(ctx, pod.Ref{UID: uid}, began); err != nil {
		return pod.Observed{}, fmt.Errorf("refresh pod %s: %w", uid, err)
	}
	if seen, ok := o.Get(uid); ok {
		return seen, nil
	}
	return pod.Observed{Ref: pod.Ref{UID: uid}, At: began}, nil
}

// readPod lists one pod and reads what may have changed in it.
func (o *Observer) readPod(ctx context.Context, ref pod.Ref, began time.Time) error {
	defer func() { o.meters.PodRead.Took(o.clock.Since(began)) }()
	all, err := o.list(ctx, ref.UID)
	if err != nil {
		return err
	}
	l := all[ref.UID]
	if l == nil {
		o.store(sighting{ref: ref, at: began, complete: true})
		return nil
	}
	s, err := o.readListed(ctx, l, began)
	if err != nil {
		return err
	}
	o.store(s)
	return nil
}

// inspect has a pod read in the background, because an event told too little. It is the
// stream's only way to ask the runtime, so that it never waits.
func (o *Observer) inspect(ctx context.Context, ref pod.Ref) {
	o.begin(ctx, ref, nil, func() error { return o.readPod(ctx, ref, o.clock.Now()) })
}

// inspectListed has a pod read whose lists are at hand already.
func (o *Observer) inspectListed(ctx context.Context, l *listed, began time.Time, started *sync.WaitGroup) {
	o.begin(ctx, l.ref, started, func() error {
		s, err := o.readListed(ctx, l, began)
		if err != nil {
			return err
		}
		o.store(s)
		return nil
	})
}

// begin runs one reading of a pod, in a goroutine of its own so that one that hangs harms
// no other pod. While one is underway no second is begun; it is done again instead.
func (o *Observer) begin(ctx context.Context, ref pod.Ref, started *sync.WaitGroup, read func() error) {
	o.mu.Lock()
	_, underway := o.inspecting[ref.UID]
	o.inspecting[ref.UID] = underway
	o.mu.Unlock()
	if underway {
		return
	}
	if started != nil {
		started.Add(1)
	}
	o.inspections.Go(func() {
		err := read()
		for o.readAgain(ref.UID) {
			err = o.readPod(ctx, ref, o.clock.Now())
		}
		if started != nil {
			started.Done()
		}
		if err != nil && ctx.Err() == nil {
			o.log.Warn("cannot read a pod from the runtime", "pod", ref, "err", err)
			select {
			case <-o.clock.After(o.cfg.PollPeriod):
				o.relistNow.Notify() // a relist sees the difference and has it read again
			case <-ctx.Done():
			}
		}
	})
}

// readAgain reports whether the reading that just ended must be repeated, and ends it if
// not.
func (o *Observer) readAgain(uid types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	again := o.inspecting[uid]
	if again {
		o.inspecting[uid] = false
	} else {
		delete(o.inspecting, uid)
	}
	return again
}

// readListed reads the state of what the lists name, as far as it can have changed.
// What was removed since it was listed is left out.
func (o *Observer) readListed(ctx context.Context, l *listed, began time.Time) (sighting, error) {
	s := sighting{ref: l.ref, at: began, complete: true}
	for _, item := range l.sandboxes {
		sandbox, err := o.readSandbox(ctx, l.ref.UID, item)
		if cri.IsNotFound(err) {
			continue
		}
		if err != nil {
			return sighting{}, err
		}
		s.sandboxes = append(s.sandboxes, sandbox)
	}
	for _, item := range l.containers {
		c, err := o.readContainer(ctx, l.ref.UID, item)
		if cri.IsNotFound(err) {
			continue
		}
		if err != nil {
			return sighting{}, err
		}
		s.containers = append(s.containers, member{Container: c, sandbox: item.PodSandboxId})
	}
	return s, nil
}

// readSandbox reads a sandbox unless it is known with this state and its addresses, which
// it has for life and then no more.
func (o *Observer) readSandbox(ctx context.Context, uid types.UID, item *runtimeapi.PodSandbox) (pod.Sandbox, error) {
	o.mu.Lock()
	var known box
	if r, ok := o.pods[uid]; ok {
		known = r.sandboxes[item.Id]
	}
	o.mu.Unlock()
	if known.ID != "" && known.Ready == isReady(item) && (known.HostNetwork || known.Ready == (len(known.IPs) > 0)) {
		return known.Sandbox, nil
	}
	answer, err := o.runtime.PodSandboxStatus(ctx, item.Id, false)
	if err != nil {
		return pod.Sandbox{}, err
	}
	return cri.SandboxFrom(answer.Status), nil
}

// readContainer reads a container unless it is known to have exited a while ago.
func (o *Observer) readContainer(ctx context.Context, uid types.UID, item *runtimeapi.Container) (pod.Container, error) {
	o.mu.Lock()
	var known member
	if r, ok := o.pods[uid]; ok {
		known = r.containers[item.Id]
	}
	o.mu.Unlock()
	if known.State == pod.Exited && o.clock.Since(known.FinishedAt) > settled {
		return known.Container, nil
	}
	answer, err := o.runtime.ContainerStatus(ctx, item.Id, false)
	if err != nil {
		return pod.Container{}, err
	}
	return cri.ContainerFrom(answer.Status), nil
}
