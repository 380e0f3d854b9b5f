// Package stepclock has a clock whose wall time a test can set, while its monotonic time goes on: what
// settimeofday does to the agent.
package stepclock

import (
	"sync/atomic"
	"time"
	"unsafe"

	"k8s.io/utils/clock"
)

// Clock is the system's clock, or that of a synctest bubble, with another wall time.
type Clock struct {
	clock.RealClock
	offset atomic.Int64
}

// Step sets the wall time forward by d, or back if it is negative. d must be whole seconds.
func (c *Clock) Step(d time.Duration) { c.offset.Add(int64(d)) }

// Now has the wall time of this clock and the monotonic time of the system's.
func (c *Clock) Now() time.Time { return shift(time.Now(), time.Duration(c.offset.Load())) }

// Since is the monotonic time since t, or the wall time if t has no monotonic time.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Wall is the wall time alone, as another process on the same host reads it.
func (c *Clock) Wall() time.Time { return c.Now().Round(0) }

// A time.Time with a monotonic time begins with two words: one bit, 33 bits of seconds since 1885 and 30
// bits of nanoseconds; then the monotonic nanoseconds.
const (
	monotonicBit = 1 << 63
	secondsShift = 30
)

var (
	wallEpoch = time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	// monotonicEpoch is the start of the monotonic time that a synctest bubble's times get: they have none.
	monotonicEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Hour)
)

// shift moves the wall time of t and leaves its monotonic time. Package time has no function for that.
func shift(t time.Time, by time.Duration) time.Time {
	words := (*[2]uint64)(unsafe.Pointer(&t))
	if words[0]&monotonicBit == 0 {
		monotonic, seconds, nanoseconds := t.Sub(monotonicEpoch), t.Unix()-wallEpoch, t.Nanosecond()
		words[0] = monotonicBit | uint64(seconds)<<secondsShift | uint64(nanoseconds)
		words[1] = uint64(monotonic)
	}
	words[0] += uint64(by/time.Second) << secondsShift
	return t
}
