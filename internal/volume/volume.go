package volume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/contain"
	"swiftlet/internal/meter"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
	"swiftlet/internal/volume/content"
	"swiftlet/internal/volume/emptydir"
	"swiftlet/internal/volume/flexvolume"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/projected"
	"swiftlet/internal/volume/quota"
	"swiftlet/internal/why"
)

// Config is fixed for the life of the agent.
type Config struct {
	// RootDir is the kubelet's root directory, /var/lib/kubelet.
	RootDir string
	// MountTimeout bounds one Mount. Zero means 2m3s, as in the reference kubelet.
	MountTimeout time.Duration
	// HangTimeout is how long one attempt may take before an event reports it. Zero means ten
	// seconds.
	HangTimeout time.Duration
	// NodeName is the name of the node, FlexVolumeDir the directory of FlexVolume drivers.
	NodeName      string
	FlexVolumeDir string
	// SysDir and DevDir are /sys and /dev, except in tests.
	SysDir, DevDir string
	// SELinux is set if SELinux is enabled on the node, so that volumes are relabelled.
	SELinux bool
	// SELinuxMountReadWriteOncePodOnly limits mounts with an SELinux label to ReadWriteOncePod volumes.
	SELinuxMountReadWriteOncePodOnly bool
	// HealthPeriod is the period of health checks; zero means none.
	HealthPeriod time.Duration
	// BindMountOptions enables the bindMountOptions of volumeMounts.
	BindMountOptions bool
}

// Deps are the dependencies of Volumes.
type Deps struct {
	Objects Objects
	// Tokens may be nil: then volumes with a service account token cannot be mounted.
	Tokens Tokens
	// Trust may be nil: then volumes with trust bundles cannot be mounted.
	Trust Trust
	// Certificates may be nil: then volumes with pod certificates cannot be mounted.
	Certificates Certificates
	// Claims may be nil: then volumes behind claims cannot be mounted.
	Claims Claims
	// Attachments may be nil: then no controller attaches volumes.
	Attachments Attachments
	// Node returns this node's object; may be nil without an API server.
	Node func() (*v1.Node, error)
	// Labels may be nil: then volumes are not mounted with an SELinux label.
	Labels Labels
	// Plugins are plugins in addition to the built-in ones.
	Plugins []plugin.Plugin
	// Mounter may be nil: then mounts.Kernel is used.
	Mounter Mounter
	// Quotas may be nil: then usage is not tracked with project quotas.
	Quotas Quotas
	// Allocatable is the node's allocatable resources.
	Allocatable func() v1.ResourceList
	Changed     Changed
	Events      pod.Events
	Panics      contain.Reporter
	Meters      Meters
	// Why records the attempts to mount each volume; may be nil.
	Why   *why.Tracker
	Clock clock.WithTicker
	// Jitter is a random number in [0, 1) that spreads periodic checks; nil means no jitter.
	Jitter func() float64
	Log    *slog.Logger
}

// Changed has what is called when a result of Volumes changes. Each may be nil and must not block.
type Changed struct {
	InUse  func()
	Health func(uid types.UID)
}

// Meters are the metrics of Volumes; each may be nil.
type Meters struct {
	// Operation observes the duration of one attempt by plugin.
	Operation func(plugin string, operation Operation, took time.Duration, err error)
	// Mounted observes the time from the request of a volume until it is mounted, by plugin.
	Mounted meter.TimingOf
}

// Operation is an operation on a volume.
type Operation string

// Operations, with the names of the reference kubelet.
const (
	OperationMount   Operation = "volume_mount"
	OperationMap     Operation = "map_volume"
	OperationUnmount Operation = "volume_unmount"
)

// Objects reads ConfigMaps and Secrets and reports their changes. A pod must be registered with it
// before it is mounted.
type Objects interface {
	projected.Objects
	OnChange(func(kind, namespace, name string))
}

// Tokens issues service account tokens.
type Tokens interface {
	projected.Tokens
	// Forget drops the tokens of a pod that is gone.
	Forget(uid types.UID)
}

// Trust reads ClusterTrustBundles and reports their changes.
type Trust interface {
	projected.Trust
	OnChange(func())
}

// Certificates issues certificates for pods and reports when requests are answered.
type Certificates interface {
	projected.Certificates
	OnChange(func())
	// Forget drops the keys of a pod that is gone.
	Forget(uid types.UID)
}

// Mounter is the part of mounts.Kernel that Volumes uses.
type Mounter interface {
	emptydir.Mounter
	Bind(fd int, target string) error
	Unmount(path string) error
	ForceUnmount(path string) error
	MountPoints(dir string) ([]string, error)
	SameFilesystemMount(path, dir string) (string, error)
	UnmountBeneath(dir string) error
}

// Quotas tracks the usage of volumes with project quotas. quota.Projects implements it.
type Quotas interface {
	emptydir.Quotas
	Used(dir string) (quota.Usage, bool)
	// ReleaseStale releases the quotas of volumes that no longer exist.
	ReleaseStale()
}

// Volumes is the volume reconciler. Its methods may be called from any goroutine; those for one pod are
// called by that pod's worker, one at a time.
type Volumes struct {
	cfg     Config
	deps    Deps
	plugins []plugin.Plugin
	drivers *flexvolume.Drivers
	budget  *content.Budget

	mu      sync.Mutex
	pods    map[types.UID]*podVolumes
	devices map[deviceKey]*device
	// unknownDevices are pods with volumes whose device could not be determined.
	unknownDevices map[types.UID]bool
	due            refreshSchedule
	// orphansUnstaged: UnstageOrphans has succeeded. complete: no unknown attachable volume is left.
	orphansUnstaged, complete bool
	// wake notifies Run that due has changed.
	wake notify.Signal
	// retrySignal is closed and replaced by every Retry.
	retrySignal chan struct{}
	// operations may outlive their caller: refreshes, and a SetUp that hangs in the kernel after its
	// Mount has timed out. None is started once stopped is set.
	operations sync.WaitGroup
	stopped    bool
	// unmounts has those that hang in the kernel.
	unmounts contain.Calls
	// lifetime is done when stopped is set.
	lifetime context.Context
	cancel   context.CancelFunc
}

// defaultMountTimeout is the timeout of the reference kubelet.
const defaultMountTimeout = 2*time.Minute + 3*time.Second

const defaultHangPatience = 10 * time.Second

// maxHungUnmounts is more than a node has pods, each of which has one: with that many, no further pod could end.
const maxHungUnmounts = 1024

// finishTimeout bounds the wait for operations when the agent ends.
const finishTimeout = 10 * time.Second

// New checks its arguments and subscribes to object changes; it starts nothing.
func New(cfg Config, deps Deps) (*Volumes, error) {
	if !filepath.IsAbs(cfg.RootDir) {
		return nil, errors.New("new volumes: RootDir must be an absolute path")
	}
	err := require.Set("new volumes", map[string]any{
		"Objects": deps.Objects, "Allocatable": deps.Allocatable, "Events": deps.Events, "Clock": deps.Clock, "Log": deps.Log,
	})
	if err != nil {
		return nil, err
	}
	if cfg.MountTimeout <= 0 {
		cfg.MountTimeout = defaultMountTimeout
	}
	if cfg.SysDir == "" {
		cfg.SysDir = "/sys"
	}
	if cfg.DevDir == "" {
		cfg.DevDir = "/dev"
	}
	if cfg.HangTimeout <= 0 {
		cfg.HangTimeout = defaultHangPatience
	}
	if deps.Mounter == nil {
		deps.Mounter = &mounts.Kernel{}
	}
	budget := content.NewBudget()
	tools := mounts.NewTools()
	v := &Volumes{
		cfg:     cfg,
		deps:    deps,
		plugins: newPlugins(cfg, deps, tools, budget),
		budget:  budget,
		drivers: newDrivers(cfg, deps, tools),
		pods:    map[types.UID]*podVolumes{},
		devices: map[deviceKey]*device{}, unknownDevices: map[types.UID]bool{},
		wake:        notify.New(),
		retrySignal: make(chan struct{}),
		unmounts:    contain.Calls{Limit: maxHungUnmounts},
	}
	v.lifetime, v.cancel = context.WithCancel(context.Background())
	deps.Objects.OnChange(v.objectChanged)
	if deps.Trust != nil {
		deps.Trust.OnChange(func() { v.sourceChanged(projectsTrustBundle) })
	}
	if deps.Certificates != nil {
		deps.Certificates.OnChange(func() { v.sourceChanged(projectsCertificate) })
	}
	return v, nil
}

// Run refreshes mounted volumes when they are due, until ctx is done. It returns when no operation is
// running.
func (v *Volumes) Run(ctx context.Context) error {
	if err := v.drivers.MakeDir(); err != nil {
		v.deps.Log.Warn("failed to create directory of FlexVolume drivers", "err", err)
	}
	v.releaseStaleQuotas()
	for {
		timer, expired := v.nextTimer()
		select {
		case <-ctx.Done():
		case <-v.wake:
		case <-expired:
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return v.finish()
		}
		for _, key := range v.popDue() {
			v.runAsync(func() { v.refresh(ctx, key) })
		}
	}
}

// runAsync runs an operation in the background. After the end of Run it does nothing: callers that wait
// for the outcome see their own context end.
func (v *Volumes) runAsync(operation func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.stopped {
		v.operations.Go(func() {
			_ = v.deps.Panics.Call("volume", func() error { operation(); return nil })
		})
	}
}

// finish waits for running operations, but not forever: one may hang in the kernel.
func (v *Volumes) finish() error {
	v.mu.Lock()
	v.stopped = true
	v.cancel()
	for _, pv := range v.pods {
		pv.cancel()
	}
	v.mu.Unlock()
	idle := make(chan struct{})
	go func() { v.operations.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-v.deps.Clock.After(finishTimeout):
		return fmt.Errorf("stop volumes: an operation still hangs after %v", finishTimeout)
	}
}

// nextTimer is a timer for the first scheduled time, nil if there is none.
func (v *Volumes) nextTimer() (clock.Timer, <-chan time.Time) {
	v.mu.Lock()
	at, ok := v.due.first()
	v.mu.Unlock()
	if !ok {
		return nil, nil
	}
	timer := v.deps.Clock.NewTimer(at.Sub(v.deps.Clock.Now()))
	return timer, timer.C()
}

func (v *Volumes) popDue() []volumeKey {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.due.popDue(v.deps.Clock.Now())
}

// scheduleLocked sets the time of the next refresh or check.
func (v *Volumes) scheduleLocked(key volumeKey, at time.Time) {
	v.due.set(key, at)
	v.wake.Notify()
}

func (v *Volumes) podDir(uid types.UID) string {
	return filepath.Join(v.cfg.RootDir, "pods", string(uid))
}
