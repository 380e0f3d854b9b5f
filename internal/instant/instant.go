// Package instant puts wall-clock times of other processes, such as those of the runtime and the API
// server, on the monotonic clock of the agent. What is computed from them does not change when the wall
// clock is set.
package instant

import "time"

// Of returns t on the monotonic clock of now, which must have been read just now. Call it once for each
// time, as soon as it is known, and keep the result: after a step of the wall clock the result of a
// further call is wrong by that step.
func Of(t, now time.Time) time.Time { return now.Add(wallSub(t, now)) }

// Past is Of for a time that cannot be in the future: a later one counts as now.
func Past(t, now time.Time) time.Time {
	if age := wallSub(now, t); age > 0 {
		return now.Add(-age)
	}
	return now
}

// wallSub is a.Sub(b) on the wall clock.
func wallSub(a, b time.Time) time.Duration { return a.Round(0).Sub(b.Round(0)) }

// tolerance is how much the wall clock may move against the monotonic one between two calls of Stepped
// without being a step: the kernel slews it to follow a time server.
const tolerance = time.Second

// Steps finds steps of the wall clock. The zero value is ready to use. It is not safe for concurrent use.
type Steps struct{ last time.Time }

// Stepped reports by how much the wall clock has been set since the last call, zero for not at all.
func (s *Steps) Stepped(now time.Time) time.Duration {
	last := s.last
	s.last = now
	if last.IsZero() {
		return 0
	}
	if step := wallSub(now, last) - now.Sub(last); step > tolerance || step < -tolerance {
		return step
	}
	return 0
}
