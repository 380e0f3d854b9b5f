// Package meter defines the instruments that packages count and time with. They are plain
// functions, so a package that measures does not depend on a metrics library. A nil instrument
// measures nothing. Instruments are called on hot paths: they must be fast and must not block.
package meter

import "time"

// Count is a counter.
type Count func()

// Inc adds one.
func (c Count) Inc() {
	if c != nil {
		c()
	}
}

// CountOf is a counter with one label.
type CountOf func(kind string)

// Inc adds one to the kind.
func (c CountOf) Inc(kind string) {
	if c != nil {
		c(kind)
	}
}

// Timing observes durations.
type Timing func(time.Duration)

// Took observes a duration.
func (t Timing) Took(d time.Duration) {
	if t != nil {
		t(d)
	}
}

// TimingOf observes durations with one label.
type TimingOf func(kind string, took time.Duration)

// Took observes a duration of the kind.
func (t TimingOf) Took(kind string, d time.Duration) {
	if t != nil {
		t(kind, d)
	}
}

// CallsOf observes durations and errors of calls with one label.
type CallsOf func(kind string, took time.Duration, err error)

// Done observes a call of the kind.
func (c CallsOf) Done(kind string, took time.Duration, err error) {
	if c != nil {
		c(kind, took, err)
	}
}

// With calls an instrument that is a plain function, unless it is nil.
func With[T any](instrument func(T), value T) {
	if instrument != nil {
		instrument(value)
	}
}
