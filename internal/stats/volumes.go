package stats

import (
	"context"
	"swiftlet/internal/pod"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// measureVolumes measures the volumes without a fresh result, all at once, so that one that
// hangs does not delay the others. It waits for the results for a bounded time.
func (s *Stats) measureVolumes(ctx context.Context, volumes []pod.MeasurableVolume, fresh time.Duration) {
	shared := context.WithoutCancel(ctx) // the result also serves the next caller
	for _, v := range volumes {
		switch {
		case v.Measure == nil:
			s.measurements.start(v.Dir, fresh, func() volumeResult { return s.measureVolume(shared, v) })
		case s.cfg.VolumePeriod >= 0:
			s.measurements.start(v.Dir, s.cfg.VolumePeriod, func() volumeResult { return s.measureByDriver(shared, v) })
		}
	}
	for _, v := range volumes {
		s.measurements.wait(ctx, v.Dir)
	}
}

// volumeStats returns the last result for a volume, and its usage of a file system that it
// shares.
func (s *Stats) volumeStats(namespace string, v pod.MeasurableVolume) (statsapi.VolumeStats, diskUsage, error) {
	out := statsapi.VolumeStats{Name: v.Name}
	if v.Claim != "" {
		out.PVCRef = &statsapi.PVCReference{Name: v.Claim, Namespace: namespace}
	}
	last := s.measurements.last(v.Dir)
	out.FsStats = last.stats
	return out, last.used, last.err
}

// measureVolume measures a volume without a driver: by its own file system if it has one, else
// by the kernel's quota, else by a walk.
func (s *Stats) measureVolume(ctx context.Context, v pod.MeasurableVolume) volumeResult {
	failed := func(err error) volumeResult { return volumeResult{at: s.deps.Clock.Now(), err: err} }
	fs, err := statfs(v.Dir)
	if err != nil {
		return failed(err)
	}
	mounted, err := isMountPoint(v.Dir)
	if err != nil {
		return failed(err)
	}
	result := volumeResult{at: s.deps.Clock.Now(), used: diskUsage{fs.used, fs.inodesUsed}}
	if used, ok := s.quotaUsage(v, mounted); ok {
		result.used = used
	} else if !mounted {
		if result, err = s.walk(ctx, v); err != nil {
			return failed(err)
		}
	}
	result.stats = *fs.withUsage(result.at, result.used)
	return result
}

// quotaUsage is the kernel's count of the files in a volume that shares its file system; false
// if the kernel does not count them.
func (s *Stats) quotaUsage(v pod.MeasurableVolume, mounted bool) (diskUsage, bool) {
	if v.QuotaUsage == nil || mounted {
		return diskUsage{}, false
	}
	began := s.deps.Clock.Now()
	bytes, inodes, ok := v.QuotaUsage()
	if ok {
		s.deps.VolumeMeasured.Took(QuotaMethod, s.deps.Clock.Now().Sub(began))
	}
	return diskUsage{bytes, inodes}, ok
}
