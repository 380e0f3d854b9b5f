package cgroup

import "context"

// MemoryThreshold is an amount of memory used by the whole node, or by all pods.
type MemoryThreshold struct {
	Pods  bool
	Bytes uint64
}

// MemoryNotifier notifies when the kernel reports that memory becomes scarce. It may notify too
// often: the receiver has to read the memory usage.
type MemoryNotifier interface {
	// SetThresholds replaces the amounts of memory usage at which to notify. It may be called
	// often, and must be called again after a notification.
	SetThresholds([]MemoryThreshold) error
	// Run calls notify until ctx is done.
	Run(ctx context.Context, notify func()) error
}

// NewMemoryNotifier returns a notifier and starts nothing. pods is the cgroup of all pods, ""
// where they have none. On cgroup v1 the kernel notifies at the thresholds. On v2 it supports
// none: there it notifies when tasks stall on memory, or the pods reach their common limit.
func (t *Tree) NewMemoryNotifier(pods string) MemoryNotifier {
	h := t.hierarchy
	if h.Version == 1 {
		return newUsageNotifier(h.Dir("memory", "/"), h.Dir("memory", pods))
	}
	notifier := &pressureNotifier{pressure: "/proc/pressure/memory", log: t.log, open: openTrigger}
	if pods != "" {
		notifier.events = h.Dir("memory", pods) + "/memory.events"
	}
	return notifier
}
