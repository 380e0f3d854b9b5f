package logs

import (
	"context"
	"errors"
	"iter"
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
	// minInterval and maxInterval bound the time between two checks of a growing log.
	minInterval = 50 * time.Millisecond
	maxInterval = time.Second
	// firstRetry is the delay after the first failed rotation.
	firstRetry = time.Second
	// slotHold is how long a rotation keeps others waiting. It takes milliseconds, unless the runtime hangs with
	// that container; the logs of others would grow meanwhile.
	slotHold = 2 * time.Second
)

// RotateConfig is fixed for the life of the agent.
type RotateConfig struct {
	// MaxSize is the size at which a log is rotated (containerLogMaxSize); negative means never.
	MaxSize int64
	// MaxFiles is the maximum number of log files of a container, including the current one
	// (containerLogMaxFiles).
	MaxFiles int
	// Workers is the maximum number of concurrent rotations (containerLogMaxWorkers).
	Workers int
	// Interval is the longest time between two checks of a growing log, and between two attempts
	// to rotate it (containerLogMonitorInterval).
	Interval time.Duration
}

// Container is a running container and its log file.
type Container struct{ ID, Log string }

// Running yields the running containers, which may write to their logs.
func Running(observed iter.Seq[pod.Observed]) iter.Seq[Container] {
	return func(yield func(Container) bool) {
		for o := range observed {
			for i := range o.Containers {
				if c := &o.Containers[i]; c.State == pod.Running && !yield(Container{ID: c.ID, Log: c.LogPath}) {
					return
				}
			}
		}
	}
}

// RotateDeps are the Rotator's dependencies.
type RotateDeps struct {
	// Containers yields the running containers. It is called after each Notify.
	Containers iter.Seq[Container]
	// Reopen makes the runtime open a new log file.
	Reopen func(ctx context.Context, id string) error
	Clock  clock.WithDelayedExecution
	Log    *slog.Logger
}

// Rotator rotates logs. It waits for inotify while a log does not grow, and checks a growing log
// the more often the faster it grows.
type Rotator struct {
	cfg     RotateConfig
	deps    RotateDeps
	changed notify.Signal
	growth  *growthWatcher

	// rotateSlots and compressSlots are semaphores.
	rotateSlots, compressSlots chan struct{}
	jobs                       sync.WaitGroup
	done                       chan *logFile // rotation succeeded or failed

	files map[string]*logFile // by container; used by Run only
	round int                 // counts calls of list
}

// logFile is the state of one log. Only Run uses it.
type logFile struct {
	Container
	round     int             // of the last list with this container
	size      int64           // at the last check
	at        time.Time       // of the last check, or when it began to grow
	next      time.Time       // check; zero while inotify watches the log
	firstSeen time.Time       // first successful check
	rotating  bool            // a rotation is in progress
	missing   backoff.Backoff // while the log does not exist
	err       error           // of the last rotation
	retry     backoff.Backoff // while rotations fail
	// compressMu prevents concurrent compression of the same files.
	compressMu sync.Mutex
}

// NewRotator validates its arguments and starts nothing.
func NewRotator(cfg RotateConfig, deps RotateDeps) (*Rotator, error) {
	if err := require.Set("new log rotator", map[string]any{
		"Containers": deps.Containers, "Reopen": deps.Reopen, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	if cfg.MaxFiles < 2 || cfg.Workers < 1 || cfg.Interval <= 0 {
		return nil, errors.New("new log rotator: MaxFiles must be at least 2, Workers and Interval positive")
	}
	return &Rotator{
		cfg: cfg, deps: deps, changed: notify.New(), growth: newGrowthWatcher(),
		rotateSlots: make(chan struct{}, cfg.Workers), compressSlots: make(chan struct{}, 1),
		done: make(chan *logFile), files: map[string]*logFile{},
	}, nil
}

// Notify makes the Rotator list the containers again. It never blocks.
func (r *Rotator) Notify() {
	r.changed.Notify()
}

// Run rotates logs until ctx is done.
func (r *Rotator) Run(ctx context.Context) error {
	if r.cfg.MaxSize < 0 {
		<-ctx.Done()
		return nil
	}
	defer r.jobs.Wait()
	if err := r.growth.open(); err != nil {
		r.deps.Log.Warn("log rotation: inotify is unavailable, polling log sizes", "err", err)
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
		running := r.step(ctx, due)
		stop()
		if !running {
			return nil
		}
	}
}

// step handles one event; it returns false when ctx is done.
func (r *Rotator) step(ctx context.Context, due <-chan time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-r.changed:
		r.list()
	case id := <-r.growth.written:
		if f := r.files[id]; f != nil && f.next.IsZero() && !f.rotating {
			f.at = r.deps.Clock.Now()
			f.next = f.at.Add(minInterval)
		}
	case f := <-r.done:
		r.rotationDone(f)
	case <-due:
		r.checkDue(ctx)
	}
	return true
}

// list adds new containers and drops those that no longer run. It is called for each container of the node that
// starts or ends, so it allocates nothing for the others.
func (r *Rotator) list() {
	r.round++
	for c := range r.deps.Containers {
		f := r.files[c.ID]
		if f == nil && c.Log != "" {
			f = r.newLogFile(c)
			r.files[c.ID] = f
		}
		if f != nil {
			f.round = r.round
		}
	}
	for id, f := range r.files {
		if f.round != r.round {
			r.growth.forget(id)
			delete(r.files, id)
		}
	}
}

func (r *Rotator) earliest() (next time.Time) {
	for _, f := range r.files {
		if !f.rotating && !f.next.IsZero() && (next.IsZero() || f.next.Before(next)) {
			next = f.next
		}
	}
	return next
}

func (r *Rotator) checkDue(ctx context.Context) {
	now := r.deps.Clock.Now()
	for _, f := range r.files {
		// Check those that are almost due as well, instead of waking up again for them.
		if !f.rotating && !f.next.IsZero() && f.next.Sub(now) < minInterval {
			r.check(ctx, f, now)
		}
	}
}

func (r *Rotator) newLogFile(c Container) *logFile {
	return &logFile{
		Container: c, next: r.deps.Clock.Now(),
		missing: backoff.Backoff{First: minInterval, Longest: r.maxCheckInterval()},
		retry:   backoff.Backoff{First: firstRetry, Longest: r.cfg.Interval},
	}
}

// check checks the size of a log, and starts a rotation or schedules the next check.
func (r *Rotator) check(ctx context.Context, f *logFile, now time.Time) {
	dir, log, err := openLogDir(f.Log)
	var size int64
	if err == nil {
		defer dir.Close()
		size, err = sizeOf(log)
	}
	if err != nil {
		// It does not exist yet, or was removed with its pod.
		f.next = now.Add(f.missing.Next())
		return
	}
	f.missing.Reset()
	if f.firstSeen.IsZero() {
		f.firstSeen = now
	}
	if size >= r.cfg.MaxSize {
		r.startRotation(ctx, f)
		return
	}
	grown, passed := size-f.size, now.Sub(f.at)
	if f.at.IsZero() {
		passed = minInterval // the growth rate is unknown: assume a high one
	}
	f.size, f.at = size, now
	if grown <= 0 && r.growth.watch(f.ID, log) == nil {
		// The watch does not report writes from before it was added.
		if again, err := sizeOf(log); err == nil && again == size {
			f.next = time.Time{}
			return
		}
	}
	// The first lines of a container say little about its growth rate.
	age := max(minInterval, now.Sub(f.firstSeen))
	f.next = now.Add(min(age, r.checkInterval(r.cfg.MaxSize-size, grown, passed)))
}

// checkInterval is the time until the next check of a log that may grow by room bytes and has
// grown by grown bytes in the time passed: half the time until it is full.
func (r *Rotator) checkInterval(room, grown int64, passed time.Duration) time.Duration {
	if grown <= 0 || passed <= 0 {
		return r.maxCheckInterval()
	}
	full := float64(passed) * float64(room) / float64(grown)
	return max(minInterval, time.Duration(min(full/2, float64(r.maxCheckInterval()))))
}

func (r *Rotator) maxCheckInterval() time.Duration { return min(maxInterval, r.cfg.Interval) }

// startRotation rotates a log in a goroutine of its own.
func (r *Rotator) startRotation(ctx context.Context, f *logFile) {
	f.rotating = true
	r.jobs.Add(1)
	go func() {
		defer r.jobs.Done()
		select {
		case r.rotateSlots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		free := sync.OnceFunc(func() { <-r.rotateSlots })
		timer := r.deps.Clock.AfterFunc(slotHold, free)
		f.err = r.rotate(ctx, f)
		timer.Stop()
		free()
		select {
		case r.done <- f:
		case <-ctx.Done():
			return
		}
		r.compress(ctx, f)
	}()
}

// rotationDone schedules the next check after a rotation.
func (r *Rotator) rotationDone(f *logFile) {
	now := r.deps.Clock.Now()
	f.rotating, f.size, f.at, f.next = false, 0, now, now.Add(minInterval)
	if f.err == nil {
		f.retry.Reset()
		return
	}
	// Retry soon: a log may grow by a gigabyte in ten seconds.
	wait := f.retry.Next()
	f.next = now.Add(wait)
	r.deps.Log.Warn("rotate container log failed", "container", f.ID, "path", f.Log, "retryAfter", wait, "err", f.err)
}

func sizeOf(path string) (int64, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("not a regular file")
	}
	return info.Size(), nil
}
