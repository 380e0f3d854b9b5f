package page

import "time"

// axis numbers the intervals since the start of the agent, on the monotonic clock: a slot does not change when the wall
// clock is set. Wall times are those of the clock as it is now.
type axis struct{ start time.Time }

// newAxis begins with the interval of now. Wall times of slots are multiples of the interval, until the clock is set.
func newAxis(now time.Time) axis {
	return axis{now.Add(now.Truncate(interval).Sub(now))}
}

// slot is the number of the interval that has the time, a reading of the clock.
func (a axis) slot(at time.Time) int64 {
	passed := at.Sub(a.start)
	if passed < 0 {
		return int64((passed - interval + 1) / interval)
	}
	return int64(passed / interval)
}

// wall is when a slot began, in seconds since 1970.
func (a axis) wall(slot int64, now time.Time) int64 {
	return now.Add(a.start.Add(time.Duration(slot) * interval).Sub(now)).Unix()
}

// times are the times of points slots up to the slot, oldest first.
func (a axis) times(points int, until int64, now time.Time) []int64 {
	all := make([]int64, points)
	for i := range all {
		all[i] = a.wall(until-int64(points-1-i), now)
	}
	return all
}
