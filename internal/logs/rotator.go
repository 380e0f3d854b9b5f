package logs

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/backoff"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

const (
	// soonest and latest bound the time between two looks at a log that is being written to.
	soonest = 50 * time.Millisecond
	latest  = time.Second
	// retry is when a rotation that failed is first tried again.
	retry = time.Second
)

// RotateConfig says when logs are rotated.
type RotateConfig struct {
	// MaxSize is how large a log may become (containerLogMaxSize); negative is for ever.
	MaxSize int64
	// MaxFiles is how many files a container has at most, with the one that is written to
	// (containerLogMaxFiles).
	MaxFiles int
	// Workers is how many logs are rotated at a time (containerLogMaxWorkers).
	Workers int
	// Interval is the longest time between two looks at a log that is written to, and between
	// two tries to rotate one (containerLogMonitorInterval).
	Interval time.Duration
}

// Container is one that writes a log.
type Container struct{ ID, Log string }

// Running lists the containers that run, of what was observed: they may write to their logs.
func Running(observed []pod.Observed) []Container {
	var running []Container
	for _, o := range observed {
		for _, c := range o.Containers {
			if c.State == pod.Running {
				running = append(running, Container{ID: c.ID, Log: c.LogPath})
			}
		}
	}
	return running
}

// RotateDeps are the rotator's surroundings.
type RotateDeps struct {
	// Containers lists those that run. It is asked after each Poke.
	Containers func() []Container
	// Reopen has the runtime go on in a new file.
	Reopen func(ctx context.Context, id string) error
	Clock  clock.WithDelayedExecution
	Log    *slog.Logger
}

// Rotator keeps logs small. A log that nobody writes to costs nothing: the kernel tells
// when that changes. One that is written to is looked at the more often the faster it grows.
type Rotator struct {
	cfg    RotateConfig
	deps   RotateDeps
	poke   notify.Signal
	growth *growth

	// rotating and compressing hold a token for each job of their kind.
	rotating, compressing chan struct{}
	jobs                  sync.WaitGroup
	done                  chan *logFile // rotated, well or not

	files map[string]*logFile // by container; belongs to Run
}

// logFile is what is known of one log. It belongs to Run.
type logFile struct {
	Container
	size    int64           // at the last look
	at      time.Time       // of the last look, or when growth began
	next    time.Time       // look; zero while the kernel is to tell
	seen    time.Time       // for the first time
	busy    bool            // it is being rotated
	missing backoff.Backoff // while the log is not there
	err     error           // of the last rotation
	retry   backoff.Backoff // while rotations fail
	// pack keeps two from compressing the same files.
	pack sync.Mutex
}

// NewRotator validates and starts nothing.
func NewRotator(cfg RotateConfig, deps RotateDeps) (*Rotator, error) {
	if err := require.Set("new log rotator", map[string]any{
		"Containers": deps.Containers, "Reopen": deps.Reopen, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	if cfg.MaxFiles < 2 || cfg.Workers < 1 || cfg.Interval <= 0 {
		return nil, errors.New("new log rotator: at least two files, one worker and an interval are needed")
	}
	return &Rotator{
		cfg: cfg, deps: deps, poke: notify.New(), growth: newGrowth(),
		rotating: make(chan struct{}, cfg.Workers), compressing: make(chan struct{}, 1),
		done: make(chan *logFile), files: map[string]*logFile{},
	}, nil
}

// Poke says that the list of containers may have changed. It never blocks.
func (r *Rotator) Poke() {
	r.poke.Notify()
}

// Run rotates until ctx ends.
func (r *Rotator) Run(ctx context.Context) error {
	if r.cfg.MaxSize < 0 {
		<-ctx.Done()
		return nil
	}
	defer r.jobs.Wait()
	if err := r.growth.open(); err != nil {
		r.deps.Log.Warn("logs are looked at now and then, for the kernel does not tell of their growth", "err", err)
	}
	watching := make(chan struct{})
	go func() { defer close(watching); r.growth.run(ctx) }()
	defer func() { <-watching }()
	r.list()
	for {
		var due <-chan time.Time
		stop := func() bool { return false }
		if next := r.earliest(); !next.IsZero() {
			timer := r.deps.Clock.NewTimer(max(0, next.Sub(r.deps.Clock.Now())))
			due, stop = timer.C(), timer.Stop
		}
		goOn := r.step(ctx, due)
		stop()
		if !goOn {
			return nil
		}
	}
}

// step waits for one thing and does what follows from it; false is that ctx has ended.
func (r *Rotator) step(ctx context.Context, due <-chan time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-r.poke:
		r.list()
	case id := <-r.growth.grew:
		if f := r.files[id]; f != nil && f.next.IsZero() && !f.busy {
			f.at = r.deps.Clock.Now()
			f.next = f.at.Add(soonest)
		}
	case f := <-r.done:
		r.rotated(f)
	case <-due:
		r.lookAtDue(ctx)
	}
	return true
}

// list takes up new containers and drops those that do not run any more.
func (r *Rotator) list() {
	running := map[string]bool{}
	for _, c := range r.deps.Containers() {
		running[c.ID] = true
		if r.files[c.ID] == nil && c.Log != "" {
			r.files[c.ID] = r.newLogFile(c)
		}
	}
	for id := range r.files {
		if !running[id] {
			r.growth.forget(id)
			delete(r.files, id)
		}
	}
}

func (r *Rotator) earliest() (next time.Time) {
	for _, f := range r.files {
		if !f.busy && !f.next.IsZero() && (next.IsZero() || f.next.Before(next)) {
			next = f.next
		}
	}
	return next
}

func (r *Rotator) lookAtDue(ctx context.Context) {
	now := r.deps.Clock.Now()
	for _, f := range r.files {
		// Those that are almost due go along, rather than to wake the machine once more.
		if !f.busy && !f.next.IsZero() && f.next.Sub(now) < soonest {
			r.look(ctx, f, now)
		}
	}
}

func (r *Rotator) newLogFile(c Container) *logFile {
	return &logFile{
		Container: c, next: r.deps.Clock.Now(),
		missing: backoff.Backoff{First: soonest, Longest: r.longest()},
		retry:   backoff.Backoff{First: retry, Longest: r.cfg.Interval},
	}
}

// look decides what becomes of a log.
func (r *Rotator) look(ctx context.Context, f *logFile, now time.Time) {
	size, err := sizeOf(f.Log)
	if err != nil {
		// It is not there yet, and may soon be, or goes with its pod.
		f.next = now.Add(f.missing.Next())
		return
	}
	f.missing.Reset()
	if f.seen.IsZero() {
		f.seen = now
	}
	if size >= r.cfg.MaxSize {
		r.begin(ctx, f)
		return
	}
	grown, passed := size-f.size, now.Sub(f.at)
	if f.at.IsZero() {
		passed = soonest // how fast it grew is not known: take it for fast
	}
	f.size, f.at = size, now
	if grown <= 0 && r.growth.watch(f.ID, f.Log) == nil {
		// What was written before the watch was there is not told of.
		if again, err := sizeOf(f.Log); err == nil && again == size {
			f.next = time.Time{}
			return
		}
	}
	// The first lines of a container say little of how fast it will write.
	known := max(soonest, now.Sub(f.seen))
	f.next = now.Add(min(known, r.pause(r.cfg.MaxSize-size, grown, passed)))
}

// pause is how long to leave a log alone that has room for so many bytes and has grown by
// so many in the time that passed: half as long as it takes to fill up.
func (r *Rotator) pause(room, grown int64, passed time.Duration) time.Duration {
	if grown <= 0 || passed <= 0 {
		return r.longest()
	}
	full := float64(passed) * float64(room) / float64(grown)
	return max(soonest, time.Duration(min(full/2, float64(r.longest()))))
}

func (r *Rotator) longest() time.Duration { return min(latest, r.cfg.Interval) }

// begin has a log rotated by a goroutine of its own.
func (r *Rotator) begin(ctx context.Context, f *logFile) {
	f.busy = true
	r.jobs.Add(1)
	go func() {
		defer r.jobs.Done()
		select {
		case r.rotating <- struct{}{}:
		case <-ctx.Done():
			return
		}
		f.err = r.rotate(ctx, f)
		<-r.rotating
		select {
		case r.done <- f:
		case <-ctx.Done():
			return
		}
		r.compress(ctx, f)
	}()
}

// rotated goes on with a log.
func (r *Rotator) rotated(f *logFile) {
	now := r.deps.Clock.Now()
	f.busy, f.size, f.at, f.next = false, 0, now, now.Add(soonest)
	if f.err == nil {
		f.retry.Reset()
		return
	}
	// A moment's trouble must not cost a disk: a log may grow by a gigabyte in ten seconds.
	wait := f.retry.Next()
	f.next = now.Add(wait)
	r.deps.Log.Warn("log not rotated", "container", f.ID, "log", f.Log, "again", wait, "err", f.err)
}

func sizeOf(path string) (int64, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("not a file")
	}
	return info.Size(), nil
}
