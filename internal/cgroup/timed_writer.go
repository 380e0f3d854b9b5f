package cgroup

import (
	"time"

	"swiftlet/internal/meter"
)

// timedWriter tells how long another writer took.
type timedWriter struct {
	writer
	took meter.TimingOf
}

func (w timedWriter) create(n name, r Resources) error {
	defer w.since("create", time.Now())
	return w.writer.create(n, r)
}

func (w timedWriter) set(n name, r Resources) error {
	defer w.since("update", time.Now())
	return w.writer.set(n, r)
}

func (w timedWriter) since(operation string, began time.Time) { w.took(operation, time.Since(began)) }
