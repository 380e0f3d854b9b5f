// Package meter holds the instruments that packages count and time with. They are plain
// functions: whoever hands them out decides what becomes of a measurement, and one that
// nobody handed out measures nothing. They are called where things happen, so they must
// be quick and must not block.
package meter

import "time"

// Count counts.
type Count func()

// Inc counts one.
func (c Count) Inc() {
	if c != nil {
		c()
	}
}

// CountOf counts by kind.
type CountOf func(kind string)

// Inc counts one of the kind.
func (c CountOf) Inc(kind string) {
	if c != nil {
		c(kind)
	}
}

// Timing takes how long something took.
type Timing func(time.Duration)

// Took notes one duration.
func (t Timing) Took(d time.Duration) {
	if t != nil {
		t(d)
	}
}

// TimingOf takes how long things took, by kind.
type TimingOf func(kind string, took time.Duration)

// Took notes one duration of the kind.
func (t TimingOf) Took(kind string, d time.Duration) {
	if t != nil {
		t(kind, d)
	}
}

// CallsOf takes how long calls took and how they ended, by kind.
type CallsOf func(kind string, took time.Duration, err error)

// Done notes one call of the kind.
func (c CallsOf) Done(kind string, took time.Duration, err error) {
	if c != nil {
		c(kind, took, err)
	}
}

// With hands a measured value on, unless nobody takes it.
func With[T any](take func(T), value T) {
	if take != nil {
		take(value)
	}
}
