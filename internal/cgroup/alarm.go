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

// NewAlarm makes an alarm and starts nothing. v1 can be told at which amount to ring. v2
// has no such thing: there it rings when tasks begin to wait for memory, or pods come to
// their common limit.
func (t *Tree) NewAlarm() Alarm {
	if t.hierarchy.Version == 2 {
		return &pressureAlarm{pressure: "/proc/pressure/memory", events: t.hierarchy.Dir("memory", t.Top()) + "/memory.events"}
	}
	return newUsageAlarm(t.hierarchy.Dir("memory", "/"), t.hierarchy.Dir("memory", t.Top()))
}

// Top is the group of all pods, below each controller's mount.
func (t *Tree) Top() string { return t.top.path(t.driver) }
