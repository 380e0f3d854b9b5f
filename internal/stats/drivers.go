package stats

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// driverTimeout is what a driver has to answer. Not all of them heed it.
const driverTimeout = 5 * time.Second

// VolumeUsage is what a volume's driver says of it. A negative number is not known.
type VolumeUsage struct {
	CapacityBytes, AvailableBytes, UsedBytes int64
	Inodes, InodesFree, InodesUsed           int64
}

// askDriver remembers also that a driver failed: it is not asked again within the period.
func (s *Stats) askDriver(ctx context.Context, v Volume) found {
	ctx, cancel := context.WithTimeout(ctx, driverTimeout)
	defer cancel()
	began := s.deps.Clock.Now()
	usage, err := v.Measure(ctx)
	now := s.deps.Clock.Now()
	s.deps.Measured.Took(v.Driver, now.Sub(began))
	return found{at: now, stats: usage.stats(now), err: err, kept: true}
}

// stats shows what is not known as 0, as the reference kubelet does.
func (u VolumeUsage) stats(at time.Time) statsapi.FsStats {
	shown := func(n int64) *uint64 { positive := uint64(max(n, 0)); return &positive }
	return statsapi.FsStats{
		Time:           metav1.NewTime(at),
		CapacityBytes:  shown(u.CapacityBytes),
		AvailableBytes: shown(u.AvailableBytes),
		UsedBytes:      shown(u.UsedBytes),
		Inodes:         shown(u.Inodes),
		InodesFree:     shown(u.InodesFree),
		InodesUsed:     shown(u.InodesUsed),
	}
}
