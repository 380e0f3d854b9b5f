package stats

import (
	"context"
	"swiftlet/internal/pod"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// driverTimeout bounds a call of a volume driver. Not all drivers honor it.
const driverTimeout = 5 * time.Second

// measureByDriver caches failures too: the driver is not called again within the period.
func (s *Stats) measureByDriver(ctx context.Context, v pod.MeasurableVolume) volumeResult {
	ctx, cancel := context.WithTimeout(ctx, driverTimeout)
	defer cancel()
	began := s.deps.Clock.Now()
	usage, err := v.Measure(ctx)
	now := s.deps.Clock.Now()
	s.deps.VolumeMeasured.Took(v.Driver, now.Sub(began))
	return volumeResult{at: now, stats: fsStats(usage, now), err: err, cacheable: true}
}

// fsStats converts unknown numbers to 0, as the reference kubelet does.
func fsStats(u pod.VolumeUsage, at time.Time) statsapi.FsStats {
	nonNegative := func(n int64) *uint64 { positive := uint64(max(n, 0)); return &positive }
	return statsapi.FsStats{
		Time:           metav1.NewTime(at),
		CapacityBytes:  nonNegative(u.CapacityBytes),
		AvailableBytes: nonNegative(u.AvailableBytes),
		UsedBytes:      nonNegative(u.UsedBytes),
		Inodes:         nonNegative(u.Inodes),
		InodesFree:     nonNegative(u.InodesFree),
		InodesUsed:     nonNegative(u.InodesUsed),
	}
}
