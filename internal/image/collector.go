package image

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// collectEvery is how often images are looked at when nothing is pulled.
const collectEvery = 5 * time.Minute

// Store is what the collector asks of the runtime; cri.Client is one.
type Store interface {
	ListImages(context.Context) ([]*runtimeapi.Image, error)
	RemoveImage(context.Context, *runtimeapi.ImageSpec) error
	ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error)
}

// CollectorConfig says which images go when.
type CollectorConfig struct {
	// High is how full the disk may become, in percent, before images go; Low is how full it
	// may stay (imageGCHighThresholdPercent, imageGCLowThresholdPercent).
	High, Low int
	// MinAge is how long an image stays after it was first seen (imageMinimumGCAge).
	MinAge time.Duration
	// MaxAge is how long one stays that nobody uses, however much room there is; zero is
	// for ever (imageMaximumGCAge).
	MaxAge time.Duration
}

// never: the disk may fill up, and no image grows too old.
func (c CollectorConfig) never() bool { return c.High == 100 && c.MaxAge == 0 }

// CollectorDeps are the collector's surroundings.
type CollectorDeps struct {
	Images Store
	// InUse lists the references to images that containers hold, dead ones too.
	InUse func(context.Context) ([]string, error)
	// Disk measures the file system that a directory is on; nil asks the kernel.
	Disk func(dir string) (Disk, error)
	// Left, where set, is told after a collection which images are still there, and when it
	// began.
	Left   func(ids []string, began time.Time)
	Events pod.Events
	// Node is what events are about.
	Node *v1.ObjectReference
	// Collected counts the images that were removed, by the reason; may be nil.
	Collected meter.CountOf
	Clock     clock.WithDelayedExecution
	Log       *slog.Logger
}

// Collector removes images that nobody uses when the disk fills up or when they grow old.
type Collector struct {
	cfg  CollectorConfig
	deps CollectorDeps
	poke notify.Signal

	uses uses
	// turn holds a token while images are being removed: two at a time would each free
	// what is wanted.
	turn chan struct{}
	// began is when the first look was, before which nobody's uses are known. It belongs to
	// whoever holds turn.
	began time.Time
	// failed: the last round did. It belongs to Run.
	failed bool

	mu sync.Mutex
	// dir is on the disk that holds the images; empty until the runtime has told.
	dir string
}

// NewCollector validates and starts nothing.
func NewCollector(cfg CollectorConfig, deps CollectorDeps) (*Collector, error) {
	if err := require.Set("new image collector", map[string]any{
		"Images": deps.Images, "InUse": deps.InUse, "Events": deps.Events, "Node": deps.Node,
		"Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	switch {
	case cfg.Low < 0 || cfg.High > 100 || cfg.Low > cfg.High:
		return nil, fmt.Errorf("new image collector: thresholds of %d%% and %d%% make no sense", cfg.Low, cfg.High)
	case cfg.MinAge < 0 || cfg.MaxAge < 0:
		return nil, errors.New("new image collector: an age is negative")
	}
	if deps.Disk == nil {
		deps.Disk = readDisk
	}
	return &Collector{
		cfg: cfg, deps: deps, poke: notify.New(), turn: make(chan struct{}, 1),
		uses: uses{images: map[string]*use{}, handed: map[string]time.Time{}},
	}, nil
}

// Run collects now and then, and when a pull has filled the disk, until ctx ends.
func (c *Collector) Run(ctx context.Context) error {
	if c.cfg.never() {
		<-ctx.Done()
		return nil
	}
	for {
		c.round(ctx)
		timer := c.deps.Clock.NewTimer(collectEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		case <-c.poke:
			timer.Stop()
		}
	}
}

// round collects once. The user is told of what fails twice in a row: a runtime that is
// just starting fails once.
func (c *Collector) round(ctx context.Context) {
	err := c.Collect(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		c.deps.Log.Warn("image garbage collection failed", "again", c.failed, "err", err)
		if c.failed {
			c.deps.Events.Eventf(c.deps.Node, v1.EventTypeWarning, "ImageGCFailed", "%s", err)
		}
	}
	c.failed = err != nil
}

// Handed notes that a container is about to use the image, by the runtime's reference.
func (c *Collector) Handed(ref string) { c.uses.hand(ref, c.deps.Clock.Now()) }

// Pulled has the disk looked at, which an image has just been written to: nothing else
// fills it with images. It never blocks on the runtime.
func (c *Collector) Pulled() {
	c.mu.Lock()
	dir := c.dir
	c.mu.Unlock()
	if dir == "" || c.cfg.never() {
		return // the first round is still to come, and finds out
	}
	disk, err := c.deps.Disk(dir)
	if err != nil || disk.used() < c.cfg.High {
		return // a disk that cannot be measured is the next round's trouble
	}
	c.poke.Notify()
}
