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

// collectInterval is the time between collections while nothing is pulled.
const collectInterval = 5 * time.Minute

// Store lists and removes the runtime's images; cri.Client is one.
type Store interface {
	ListImages(context.Context) ([]*runtimeapi.Image, error)
	RemoveImage(context.Context, *runtimeapi.ImageSpec) error
	ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error)
}

// CollectorConfig configures image garbage collection.
type CollectorConfig struct {
	// High is the disk usage in percent above which the collector removes images; Low is the
	// usage it frees down to (imageGCHighThresholdPercent, imageGCLowThresholdPercent).
	High, Low int
	// MinAge is how long an image is kept after it was first seen (imageMinimumGCAge).
	MinAge time.Duration
	// MaxAge is how long an unused image is kept even where space is plenty; zero is no limit
	// (imageMaximumGCAge).
	MaxAge time.Duration
}

// disabled reports whether no threshold can be exceeded.
func (c CollectorConfig) disabled() bool { return c.High == 100 && c.MaxAge == 0 }

// CollectorDeps are what the collector works with.
type CollectorDeps struct {
	Images Store
	// InUse lists the image references of all containers, exited ones too.
	InUse func(context.Context) ([]string, error)
	// Disk measures the file system of a directory; nil uses statfs.
	Disk func(dir string) (Disk, error)
	// Remaining is called after a collection with the images that remain and with the collection's
	// start time; may be nil.
	Remaining func(ids []string, began time.Time)
	Events    pod.Events
	// Node is the object of events.
	Node *v1.ObjectReference
	// Collected counts removed images by reason; may be nil.
	Collected meter.CountOf
	Clock     clock.WithDelayedExecution
	Log       *slog.Logger
}

// Collector removes unused images when the disk fills up or when they exceed their maximum age.
type Collector struct {
	cfg  CollectorConfig
	deps CollectorDeps
	wake notify.Signal

	usage usageTracker
	// semaphore holds a token while a collection runs: two at a time would each free the
	// whole excess.
	semaphore chan struct{}
	// firstScan is the time of the first collection; when images were used before it is
	// unknown. The semaphore guards it.
	firstScan time.Time
	// lastFailed reports whether the last round failed. Only Run uses it.
	lastFailed bool

	mu sync.Mutex
	// dir is a directory on the image file system; empty until the runtime reports one.
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
		return nil, fmt.Errorf("new image collector: invalid thresholds: low %d%%, high %d%%", cfg.Low, cfg.High)
	case cfg.MinAge < 0 || cfg.MaxAge < 0:
		return nil, errors.New("new image collector: negative age")
	}
	if deps.Disk == nil {
		deps.Disk = readDisk
	}
	return &Collector{
		cfg: cfg, deps: deps, wake: notify.New(), semaphore: make(chan struct{}, 1),
		usage: usageTracker{images: map[string]*usage{}, marked: map[string]time.Time{}},
	}, nil
}

// Run collects periodically, and when a pull has filled the disk, until ctx ends.
func (c *Collector) Run(ctx context.Context) error {
	if c.cfg.disabled() {
		<-ctx.Done()
		return nil
	}
	for {
		c.round(ctx)
		timer := c.deps.Clock.NewTimer(collectInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		case <-c.wake:
			timer.Stop()
		}
	}
}

// round collects once. It records an event for the second failure in a row: a runtime that is
// starting fails once.
func (c *Collector) round(ctx context.Context) {
	err := c.Collect(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		c.deps.Log.Warn("image garbage collection failed", "again", c.lastFailed, "err", err)
		if c.lastFailed {
			c.deps.Events.Eventf(c.deps.Node, v1.EventTypeWarning, "ImageGCFailed", "%s", err)
		}
	}
	c.lastFailed = err != nil
}

// MarkUsed marks the image, given by the runtime's reference, as used by a container that is
// about to be created.
func (c *Collector) MarkUsed(ref string) { c.usage.mark(ref, c.deps.Clock.Now()) }

// ImagePulled starts a collection if the pull that just finished filled the disk over the high
// threshold. It never blocks on the runtime.
func (c *Collector) ImagePulled() {
	c.mu.Lock()
	dir := c.dir
	c.mu.Unlock()
	if dir == "" || c.cfg.disabled() {
		return // the first round determines the directory and measures it
	}
	disk, err := c.deps.Disk(dir)
	if err != nil || disk.used() < c.cfg.High {
		return // the next round reports a disk that cannot be measured
	}
	c.wake.Notify()
}
