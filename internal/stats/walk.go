package stats

import (
	"context"
	"fmt"
	"swiftlet/internal/pod"
	"time"
)

// walkIdleFactor is how many times the duration of a walk must pass before the next one: a
// volume with millions of files must not keep the disk busy because of frequent scrapes.
const walkIdleFactor = 20

// The reference kubelet's names for a walk through the files, and for the kernel's quota.
const (
	WalkMethod  = "du"
	QuotaMethod = "fsquota"
)

// maxWalkers bounds the concurrent walks, so that hundreds of small volumes do not use as many
// threads. If all of them are long, the next walk starts after walkerWait nevertheless: a pod
// with millions of files must not hide the usage of others.
const (
	maxWalkers = 4
	walkerWait = time.Second
)

// walk measures a volume by the files in it.
func (s *Stats) walk(ctx context.Context, v pod.MeasurableVolume) (volumeResult, error) {
	if s.cfg.VolumePeriod < 0 {
		return volumeResult{}, fmt.Errorf("walk volume %s: disabled by a negative volumeStatsAggPeriod", v.Dir)
	}
	wait := s.deps.Clock.NewTimer(walkerWait)
	defer wait.Stop()
	select {
	case s.walkers <- struct{}{}:
		defer func() { <-s.walkers }()
	case <-wait.C():
	}
	began := s.deps.Clock.Now()
	used, err := treeUsage(ctx, v.Dir)
	ended := s.deps.Clock.Now()
	s.deps.VolumeMeasured.Took(WalkMethod, ended.Sub(began))
	if err != nil && used.inodes > 0 {
		s.deps.Log.Warn("stats: walk of volume is incomplete", "path", v.Dir, "err", err)
		err = nil
	}
	return volumeResult{at: ended, used: used, cacheable: true, minAge: walkIdleFactor * ended.Sub(began)}, err
}
