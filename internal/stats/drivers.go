package stats

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// driverTimeout bounds what drivers that do not answer cost a Summary, once per period.
const driverTimeout = 5 * time.Second

// VolumeUsage is what a volume's driver says of it. A negative number is not known.
type VolumeUsage struct {
	CapacityBytes, AvailableBytes, UsedBytes int64
	Inodes, InodesFree, InodesUsed           int64
}

// answers remembers what drivers said, also that they did not.
type answers struct {
	mu    *sync.Mutex
	known map[string]answer // by directory
}

type answer struct {
	until time.Time
	stats statsapi.FsStats
	err   error
}

func newAnswers() answers { return answers{mu: new(sync.Mutex), known: map[string]answer{}} }

// askDrivers has the drivers tell of those volumes that they did not tell of lately: all at
// once, so that one that hangs costs no more than its time.
func (s *Stats) askDrivers(ctx context.Context, volumes []Volume) {
	if s.cfg.VolumePeriod < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, driverTimeout)
	defer cancel()
	var asking sync.WaitGroup
	for _, v := range volumes {
		if v.Measure == nil || !s.drivers.due(v.Dir, s.deps.Clock.Now()) {
			continue
		}
		asking.Go(func() {
			began := s.deps.Clock.Now()
			usage, err := v.Measure(ctx)
			now := s.deps.Clock.Now()
			s.deps.Measured.Took(v.Driver, now.Sub(began))
			s.drivers.note(v.Dir, answer{until: now.Add(s.cfg.VolumePeriod), stats: usage.stats(now), err: err})
		})
	}
	asking.Wait()
}

func (a answers) due(dir string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, known := a.known[dir]
	return !known || !now.Before(last.until)
}

func (a answers) note(dir string, said answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[dir] = said
}

// answer is the last that was said of the volume.
func (a answers) answer(dir string) (statsapi.FsStats, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, known := a.known[dir]
	if !known {
		return statsapi.FsStats{}, errors.New("the volume's driver was not asked")
	}
	return last.stats, last.err
}

// keep forgets the volumes that are not among those still there.
func (a answers) keep(dirs map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.known, func(dir string, _ answer) bool { return !dirs[dir] })
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
