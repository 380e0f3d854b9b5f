package observe

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/instant"
	"swiftlet/internal/pod"
)

// setStreaming records the state of the stream and triggers a relist: after a break for the
// missed events, after a subscription for what happened before it. The runtime does not confirm
// a subscription, so another relist follows after PollPeriod.
func (o *Observer) setStreaming(on bool) {
	o.mu.Lock()
	o.streaming, o.justSubscribed = on, on
	o.mu.Unlock()
	o.deps.HealthChanged()
	o.relistNow.Notify()
}

// handleContained is handle. An event whose content causes a panic is dropped; a relist reads its pod.
func (o *Observer) handleContained(ctx context.Context, event *runtimeapi.ContainerEventResponse) {
	err := o.deps.Panics.Call("pleg", func() error { o.handle(ctx, event); return nil }, "container", event.GetContainerId())
	if err != nil {
		o.relistNow.Notify()
	}
}

// handle handles one event. It must not call the runtime: containerd waits for its subscribers,
// so a slow one delays every pod.
func (o *Observer) handle(ctx context.Context, event *runtimeapi.ContainerEventResponse) {
	now := o.deps.Clock.Now()
	stamp := instant.Past(time.Unix(0, event.CreatedAt), now)
	o.relistAfterStep(now)
	ref, ok := o.eventRef(event)
	if !ok {
		return
	}
	if event.ContainerEventType == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT {
		// Valid however late it is. The event has no other content.
		if o.removeObject(ref.UID, event.ContainerId) {
			o.readInBackground(ctx, ref)
		}
		return
	}
	if o.isStale(ref, stamp) {
		return
	}
	o.deps.Meters.EventLag.Took(o.deps.Clock.Since(stamp))
	if event.PodSandboxStatus == nil {
		o.readInBackground(ctx, ref)
		return
	}
	s := observation{ref: ref, at: stamp, sandboxes: []pod.Sandbox{cri.SandboxFrom(event.PodSandboxStatus)}}
	for _, status := range event.ContainersStatuses {
		s.containers = append(s.containers, containerEntry{Container: cri.ContainerFrom(status), sandbox: event.PodSandboxStatus.Id})
	}
	if o.store(s) {
		o.readInBackground(ctx, ref)
	}
}

// relistAfterStep relists if the wall clock was set since the last event: one that was on its way then
// looks too old or too new.
func (o *Observer) relistAfterStep(now time.Time) {
	if step := o.clockSteps.Stepped(now); step != 0 {
		o.deps.Log.Info("pleg: the clock was set, relisting", "by", step)
		o.relistNow.Notify()
	}
}

// eventRef returns the pod of an event; false for objects that no kubelet created.
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

// isStale reports whether the pod was read after the event's time. A runtime that delivers
// buffered events sends hundreds of such events.
func (o *Observer) isStale(ref pod.Ref, stamp time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, known := o.pods[ref.UID]; known {
		return stamp.Before(r.verified)
	}
	return stamp.Before(o.ignoreBefore)
}
