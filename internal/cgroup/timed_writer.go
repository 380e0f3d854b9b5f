package cgroup

import (
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
)

// timedWriter measures the calls of another writer.
type timedWriter struct {
	writer
	duration meter.TimingOf
	clock    clock.PassiveClock
}

func (w timedWriter) create(n cgroupName, r Resources) error {
	defer w.observe("create", w.clock.Now())
	return w.writer.create(n, r)
}

func (w timedWriter) set(n cgroupName, r Resources) error {
	defer w.observe("update", w.clock.Now())
	return w.writer.set(n, r)
}

func (w timedWriter) observe(operation string, start time.Time) {
	w.duration(operation, w.clock.Since(start))
}
