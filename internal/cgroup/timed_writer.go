package cgroup

import (
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
)

// timedWriter tells how long another writer took.
type timedWriter struct {
	writer
	took  meter.TimingOf
	clock clock.PassiveClock
}

func (w timedWriter) create(n name, r Resources) error {
	defer w.since("create", w.clock.Now())
	return w.writer.create(n, r)
}

func (w timedWriter) set(n name, r Resources) error {
	defer w.since("update", w.clock.Now())
	return w.writer.set(n, r)
}

func (w timedWriter) since(operation string, began time.Time) {
	w.took(operation, w.clock.Since(began))
}
