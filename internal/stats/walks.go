package stats

import (
	"context"
	"maps"
	"sync"
	"time"

	"swiftlet/internal/meter"
)

// rest is how many times as long as a walk took the next one is put off at least: a volume
// with millions of files must not keep the disk busy because somebody scrapes often.
const rest = 20

// What the reference kubelet calls a walk through the files, and the kernel's own count.
const (
	WalkedBy  = "du"
	CountedBy = "fsquota"
)

// walks remembers what was found in volumes.
type walks struct {
	took  meter.TimingOf
	mu    *sync.Mutex
	known map[string]walk // by directory
}

type walk struct {
	at    time.Time
	took  time.Duration
	found taken
}

func newWalks(took meter.TimingOf) walks {
	return walks{took: took, mu: new(sync.Mutex), known: map[string]walk{}}
}

// through is what the files below dir occupy, and when that was found: no longer than a
// period ago, unless the walk is a long one.
func (w *walks) through(ctx context.Context, dir string, now func() time.Time, period time.Duration) (taken, time.Time, error) {
	w.mu.Lock()
	last, known := w.known[dir]
	w.mu.Unlock()
	began := now()
	if known && began.Before(last.at.Add(max(period, rest*last.took))) {
		return last.found, last.at, nil
	}
	found, err := takenBelow(ctx, dir)
	ended := now()
	w.took.Took(WalkedBy, ended.Sub(began))
	if err != nil {
		return taken{}, began, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.known, func(_ string, old walk) bool { return ended.Sub(old.at) > stale+rest*old.took })
	w.known[dir] = walk{at: ended, took: ended.Sub(began), found: found}
	return found, ended, nil
}

// keep forgets the volumes that are not among those still there.
func (w *walks) keep(dirs map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.known, func(dir string, _ walk) bool { return !dirs[dir] })
}
