package observe

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/klogfmt"
	"swiftlet/internal/pod"
)

// lifecycleEvent is what the reference kubelet logs of a started or exited container or sandbox.
type lifecycleEvent struct {
	ID   types.UID // of the pod
	Type string
	Data string // id of the container or sandbox
}

// logEvents logs what started and exited between two observations of a pod.
func (o *Observer) logEvents(before, after pod.Observed) {
	ctx := context.Background()
	if !o.deps.Log.Enabled(ctx, klogfmt.V2) {
		return
	}
	for _, e := range lifecycleEvents(before, after) {
		o.deps.Log.Log(ctx, klogfmt.V2, "SyncLoop (PLEG): event for pod", after.Attr(), "event", e)
	}
}

// lifecycleEvents compares two observations. Containers come before sandboxes.
func lifecycleEvents(before, after pod.Observed) (events []lifecycleEvent) {
	was, is := instancesOf(before), instancesOf(after)
	for _, i := range is {
		switch {
		case slices.Contains(was, i):
		case i.running:
			events = append(events, lifecycleEvent{after.UID, "ContainerStarted", i.id})
		case i.exited:
			events = append(events, lifecycleEvent{after.UID, "ContainerDied", i.id})
		}
	}
	for _, i := range was {
		if i.running && !slices.ContainsFunc(is, func(other instance) bool { return other.id == i.id }) {
			events = append(events, lifecycleEvent{after.UID, "ContainerDied", i.id})
		}
	}
	return events
}

// instance is a container or sandbox; one that was only created neither runs nor has it exited.
type instance struct {
	id              string
	running, exited bool
}

func instancesOf(o pod.Observed) (all []instance) {
	for _, c := range o.Containers {
		all = append(all, instance{c.ID, c.State == pod.Running, c.State == pod.Exited})
	}
	for _, s := range o.Sandboxes {
		all = append(all, instance{s.ID, s.Ready, !s.Ready})
	}
	return all
}
