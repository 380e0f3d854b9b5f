package stats

import (
	"context"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// lookAt has volumes measured of which nothing is known that is fresh: all at once, so that
// one that hangs costs no more than its time. It waits for that, but not for long.
func (s *Stats) lookAt(ctx context.Context, volumes []Volume, fresh time.Duration) {
	own := context.WithoutCancel(ctx) // what is found is for the next who asks, too
	for _, v := range volumes {
		switch {
		case v.Measure == nil:
			s.looks.begin(v.Dir, fresh, func() found { return s.measure(own, v) })
		case s.cfg.VolumePeriod >= 0:
			s.looks.begin(v.Dir, s.cfg.VolumePeriod, func() found { return s.askDriver(own, v) })
		}
	}
	for _, v := range volumes {
		s.looks.await(ctx, v.Dir)
	}
}

// volumeStats is what is known of a volume, and what it takes of a file system that it shares.
func (s *Stats) volumeStats(namespace string, v Volume) (statsapi.VolumeStats, taken, error) {
	out := statsapi.VolumeStats{Name: v.Name}
	if v.Claim != "" {
		out.PVCRef = &statsapi.PVCReference{Name: v.Claim, Namespace: namespace}
	}
	last := s.looks.last(v.Dir)
	out.FsStats = last.stats
	return out, last.part, last.err
}

// measure looks at a volume without a driver: by its file system where it has one of its own,
// by the kernel's count, else by a walk through its files.
func (s *Stats) measure(ctx context.Context, v Volume) found {
	failed := func(err error) found { return found{at: s.deps.Clock.Now(), err: err} }
	on, err := spaceOf(v.Dir)
	if err != nil {
		return failed(err)
	}
	own, err := ownFileSystem(v.Dir)
	if err != nil {
		return failed(err)
	}
	got := found{at: s.deps.Clock.Now(), part: taken{on.used, on.inodesUsed}}
	if part, counted := s.counted(v, own); counted {
		got.part = part
	} else if !own {
		if got, err = s.walk(ctx, v); err != nil {
			return failed(err)
		}
	}
	got.stats = *on.with(got.at, got.part)
	return got
}

// counted is what the kernel says of the files in a volume that shares its file system, where
// it counts them.
func (s *Stats) counted(v Volume, own bool) (taken, bool) {
	if v.Counted == nil || own {
		return taken{}, false
	}
	began := s.deps.Clock.Now()
	bytes, inodes, ok := v.Counted()
	if ok {
		s.deps.Measured.Took(CountedBy, s.deps.Clock.Now().Sub(began))
	}
	return taken{bytes, inodes}, ok
}
