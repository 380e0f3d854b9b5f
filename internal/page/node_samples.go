package page

import (
	"time"

	"swiftlet/internal/instant"
	"swiftlet/internal/stats"
)

// The series of the node's ring.
const (
	seriesCPU = iota
	seriesMemory
	seriesDisk
	seriesRX
	seriesTX
	seriesPSICPU
	seriesPSIMemory
	seriesPSIIO
	nodeSeries
)

// nodeSamples has the node's usage over the last hour.
type nodeSamples struct {
	axis axis
	ring ring
	last stats.Counters
	boot time.Time // on the monotonic clock
}

func newNodeSamples(axis axis) nodeSamples {
	return nodeSamples{axis: axis, ring: ring{series: nodeSeries, points: nodePoints}}
}

// add adds a reading. Rates are those since the reading before, unless that is too short ago for one.
func (n *nodeSamples) add(now stats.Counters) {
	before := n.last
	if passed := now.At.Sub(before.At); passed >= 0 && passed < time.Second {
		return
	}
	rate := func(value, earlier float64) float32 {
		passed := now.At.Sub(before.At).Seconds()
		if before.At.IsZero() || passed <= 0 || passed > 2*closedInterval.Seconds() || value < earlier {
			return unknown
		}
		return float32((value - earlier) / passed)
	}
	if n.boot.IsZero() && !now.Boot.IsZero() {
		n.boot = instant.Past(now.Boot, now.At)
	}
	n.ring.add(n.axis.slot(now.At), carried,
		rate(now.CPUSeconds, before.CPUSeconds), float32(now.Memory), float32(now.Disk), rate(now.RX, before.RX), rate(now.TX, before.TX),
		float32(now.PSICPU), float32(now.PSIMemory), float32(now.PSIIO))
	n.last = now
}

func (n *nodeSamples) history(now time.Time) NodeHistory {
	until := n.axis.slot(now)
	list := func(series int) []*float32 { return n.ring.list(series, until) }
	return NodeHistory{Interval: int64(interval / time.Second), Node: NodeSeries{
		T: n.axis.times(nodePoints, until, now), CPU: list(seriesCPU), Memory: list(seriesMemory), Disk: list(seriesDisk), RX: list(seriesRX), TX: list(seriesTX),
		PSICPU: list(seriesPSICPU), PSIMemory: list(seriesPSIMemory), PSIIO: list(seriesPSIIO),
	}}
}

// newest is the newest point.
func (n *nodeSamples) newest(now time.Time) Sample {
	at := n.ring.last
	get := func(series int) *float32 { return n.ring.get(series, at) }
	return Sample{
		T: n.axis.wall(at, now), CPU: get(seriesCPU), Memory: get(seriesMemory), Disk: get(seriesDisk), RX: get(seriesRX), TX: get(seriesTX),
		PSICPU: get(seriesPSICPU), PSIMemory: get(seriesPSIMemory), PSIIO: get(seriesPSIIO),
	}
}

// use is what the node uses now.
func (n *nodeSamples) use() NodeUse {
	u := NodeUse{Memory: bytesOf(n.last.Memory), Disk: bytesOf(n.last.Disk), DiskCapacity: bytesOf(n.last.DiskCapacity)}
	if cpu := n.ring.get(seriesCPU, n.ring.last); cpu != nil {
		cores := float64(*cpu)
		u.CPU = &cores
	}
	return u
}

func bytesOf(v float64) *int64 {
	if !(v >= 0) { // unknown
		return nil
	}
	n := int64(v)
	return &n
}
