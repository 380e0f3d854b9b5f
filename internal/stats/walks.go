package stats

import (
	"context"
	"fmt"
	"time"
)

// rest is how many times as long as a walk took the next one is put off at least: a volume
// with millions of files must not keep the disk busy because somebody scrapes often.
const rest = 20

// What the reference kubelet calls a walk through the files, and the kernel's own count.
const (
	WalkedBy  = "du"
	CountedBy = "fsquota"
)

// Walkers walk at the same time, so that hundreds of small volumes do not have as many
// threads made. Where all are on long ways, the next begins after a turn nevertheless: a pod
// with millions of files must not hide what others write.
const (
	walkers = 4
	turn    = time.Second
)

// walk is what the files of the volume occupy.
func (s *Stats) walk(ctx context.Context, v Volume) (found, error) {
	if s.cfg.VolumePeriod < 0 {
		return found{}, fmt.Errorf("%s: volumes are not walked (volumeStatsAggPeriod is negative)", v.Dir)
	}
	wait := s.deps.Clock.NewTimer(turn)
	defer wait.Stop()
	select {
	case s.walking <- struct{}{}:
		defer func() { <-s.walking }()
	case <-wait.C():
	}
	began := s.deps.Clock.Now()
	part, err := takenBelow(ctx, v.Dir)
	ended := s.deps.Clock.Now()
	s.deps.Measured.Took(WalkedBy, ended.Sub(began))
	if err != nil && part.inodes > 0 {
		s.deps.Log.Warn("a part of a volume is not counted", "dir", v.Dir, "err", err)
		err = nil
	}
	return found{at: ended, part: part, kept: true, rest: rest * ended.Sub(began)}, err
}
