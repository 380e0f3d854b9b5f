package cgroup

import "context"

// Mark is an amount of memory in use by the whole tree, or by all pods.
type Mark struct {
	Pods  bool
	Bytes uint64
}

// Alarm rings when the kernel sees memory run short. It may ring without need; it is the
// one who hears it who looks.
type Alarm interface {
	// Set has the alarm ring when memory in use comes to these marks. It may be called often,
	// and is to be called again after a ring.
	Set([]Mark) error
	// Run rings until ctx ends.
	Run(ctx context.Context, ring func()) error
}

// NewAlarm makes an alarm and starts nothing. pods is the group of all pods, "" where they
// have none. v1 can be told at which amount to ring. v2 has no such thing: there it rings
// when tasks begin to wait for memory, or pods come to their common limit.
func (t *Tree) NewAlarm(pods string) Alarm {
	h := t.hierarchy
	if h.Version == 1 {
		return newUsageAlarm(h.Dir("memory", "/"), h.Dir("memory", pods))
	}
	alarm := &pressureAlarm{pressure: "/proc/pressure/memory", log: t.log, open: openTrigger}
	if pods != "" {
		alarm.events = h.Dir("memory", pods) + "/memory.events"
	}
	return alarm
}

// Top is the group of all pods, below each controller's mount.
func (t *Tree) Top() string { return t.top.path(t.driver) }
