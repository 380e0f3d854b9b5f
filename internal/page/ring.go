package page

import (
	"math"
	"time"
)

const (
	// interval is that of the points of all plots.
	interval = 10 * time.Second
	// nodePoints and podPoints are an hour and ten minutes.
	nodePoints, podPoints = 360, 60
	// carried is for how many points before it a value stands, when samples are rare.
	carried = int64(closedInterval / interval)
)

// ring has the last values of some series at fixed intervals; NaN is unknown. The zero value is empty, and takes no
// memory before its first point.
type ring struct {
	series, points int
	last           int64 // slot of the newest point
	values         []float32
}

// add sets the values of a slot, unless it is older than what the ring holds. They stand for the unknown slots before it,
// too, up to reach of them.
func (r *ring) add(slot int64, reach int64, values ...float32) {
	if slot < 0 || r.values != nil && slot <= r.last-int64(r.points) {
		return
	}
	if r.values == nil {
		r.values = make([]float32, r.series*r.points)
		for i := range r.values {
			r.values[i] = unknown
		}
		r.last = slot - 1
	}
	if slot > r.last+int64(r.points) { // none of the older ones is left
		r.fill(unknown)
		r.last = slot - 1
	}
	first := r.last + 1
	for at := first; at <= slot; at++ {
		for i, v := range values {
			if slot-at >= max(reach, 1) {
				v = unknown
			}
			*r.at(i, at) = v
		}
	}
	if slot <= r.last { // again in the same interval
		for i, v := range values {
			*r.at(i, slot) = v
		}
	}
	r.last = max(r.last, slot)
}

func (r *ring) fill(v float32) {
	for i := range r.values {
		r.values[i] = v
	}
}

func (r *ring) at(series int, slot int64) *float32 {
	return &r.values[series*r.points+int(slot%int64(r.points))]
}

// list returns a series up to the slot, oldest first, nil where it is unknown.
func (r *ring) list(series int, until int64) []*float32 {
	all := make([]*float32, r.points)
	for i := range all {
		all[i] = r.get(series, until-int64(r.points-1-i))
	}
	return all
}

// get returns a copy of one value, nil if it is unknown.
func (r *ring) get(series int, slot int64) *float32 {
	if r.values == nil || slot > r.last || slot <= r.last-int64(r.points) || slot < 0 {
		return nil
	}
	return known(*r.at(series, slot))
}

var unknown = float32(math.NaN())

// known returns nil for NaN.
func known(v float32) *float32 {
	if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
		return nil
	}
	return &v
}
