package observe

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/backoff"
	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Second
	// noStreamRetry is how often a runtime without a stream is asked again: it may have
	// been upgraded under us.
	noStreamRetry = time.Minute
)

// follow keeps a subscription to the runtime's events until ctx is done.
func (o *Observer) follow(ctx context.Context) {
	retry := backoff.Backoff{First: firstRetry, Longest: lastRetry}
	for {
		began := o.clock.Now()
		o.setStreaming(true)
		err := o.runtime.Events(ctx, func(event *runtimeapi.ContainerEventResponse) { o.handle(ctx, event) })
		o.setStreaming(false)
		if ctx.Err() != nil {
			return
		}
		o.meters.Broken.Inc()
		if o.clock.Since(began) > lastRetry { // it worked
			retry.Reset()
		}
		wait := retry.Next()
		if cri.IsUnimplemented(err) {
			wait = noStreamRetry
		}
		o.log.Warn("no events from the runtime, polling it", "period", o.cfg.PollPeriod, "retry", wait, "err", err)
		select {
		case <-o.clock.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// setStreaming notes the state of the stream and has everything listed at once: after a
// break, for what was missed, and after a subscription, for what came before it. There is
// no sign of when the runtime has accepted a subscription, so another relist follows soon.
func (o *Observer) setStreaming(on bool) {
	o.mu.Lock()
	o.streaming, o.settling = on, on
	o.mu.Unlock()
	o.disturb()
	o.relistNow.Notify()
}

// handle takes one event. It must not call the runtime: containerd waits for its
// subscribers, so a slow one slows every pod.
func (o *Observer) handle(ctx context.Context, event *runtimeapi.ContainerEventResponse) {
	stamp := time.Unix(0, event.CreatedAt)
	ref, ok := o.eventRef(event)
	if !ok {
		return
	}
	if event.ContainerEventType == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT {
		// True whenever it comes, and all that is to be learned: it carries no containers.
		if o.forget(ref.UID, event.ContainerId) {
			o.inspect(ctx, ref)
		}
		return
	}
	if o.isOld(ref, stamp) {
		return
	}
	o.meters.EventLag.Took(o.clock.Since(stamp))
	if event.PodSandboxStatus == nil {
		o.inspect(ctx, ref)
		return
	}
	s := sighting{ref: ref, at: stamp, sandboxes: []pod.Sandbox{cri.SandboxFrom(event.PodSandboxStatus)}}
	for _, status := range event.ContainersStatuses {
		s.containers = append(s.containers, member{Container: cri.ContainerFrom(status), sandbox: event.PodSandboxStatus.Id})
	}
	if o.store(s) {
		o.inspect(ctx, ref)
	}
}

// eventRef finds whose event it is. Nobody's events are of objects that no kubelet made.
func (o *Observer) eventRef(event *runtimeapi.ContainerEventResponse) (pod.Ref, bool) {
	if ref, ok := cri.RefFrom(event.GetPodSandboxStatus().GetLabels()); ok {
		return ref, true
	}
	for _, status := range event.ContainersStatuses {
		if ref, ok := cri.RefFrom(status.Labels); ok {
			return ref, true
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ownerOf(event.ContainerId)
}

// isOld reports whether a reading that began after the event's time has been made. Such
// events come in hundreds when a runtime delivers what it buffered.
func (o *Observer) isOld(ref pod.Ref, stamp time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, known := o.pods[ref.UID]; known {
		return stamp.Before(r.verified)
	}
	return stamp.Before(o.floor)
}
