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

	"swiftlet/internal/meter"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/volume/emptydir"
	"swiftlet/internal/volume/flexvolume"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/projected"
	"swiftlet/internal/volume/quota"
)

// Config is fixed for the life of the agent.
type Config struct {
	// RootDir holds the pods' directories, /var/lib/kubelet.
	RootDir string
	// MountTimeout bounds one Mount. Zero means the reference kubelet's 2m3s.
	MountTimeout time.Duration
	// HangTimeout is how long one try may take before the pod's owner is told. Zero means
	// ten seconds.
	HangTimeout time.Duration
	// NodeName is the node's, DriverDir the directory of FlexVolume drivers.
	NodeName  string
	DriverDir string
	// SysDir and DevDir are /sys and /dev, but for tests.
	SysDir, DevDir string
	// SELinux says that the node labels files, so volumes of ours need relabelling.
	SELinux bool
	// SELinuxOnePodOnly keeps the mounting of volumes with a label to those that one pod has
	// alone.
	SELinuxOnePodOnly bool
	// HealthPeriod is how often volumes are asked how they fare; zero means never.
	HealthPeriod time.Duration
	// BindMountOptions says that those of a container's mount count.
	BindMountOptions bool
}

// Deps is what the reconciler works with.
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
	// Attachments may be nil: then nobody attaches volumes but their own kind.
	Attachments Attachments
	// Node is this node as the API server has it; may be nil where there is none.
	Node func() (*v1.Node, error)
	// Labels may be nil: then volumes are not mounted with a label.
	Labels Labels
	// Kinds are further kinds of volumes.
	Kinds []plugin.Plugin
	// Mounter may be nil: then the kernel is called.
	Mounter Mounter
	// Quotas may be nil: then the kernel is not asked to count what is in volumes.
	Quotas Quotas
	// Allocatable is what pods may use of the node.
	Allocatable func() v1.ResourceList
	// InUseChanged is told when InUse lists something else; may be nil. It must not block.
	InUseChanged func()
	// HealthChanged is told when Health has something else to say of a pod; may be nil. It
	// must not block.
	HealthChanged func(uid types.UID)
	Events        pod.Events
	Meters        Meters
	Clock         clock.WithTicker
	// Jitter is a random number in [0, 1), which spreads periodic looks at volumes; nil: they
	// are not spread.
	Jitter func() float64
	Log    *slog.Logger
}

// Meters measure the reconciler's work; each may be nil.
type Meters struct {
	// Operation takes how long one try took, by kind of volume.
	Operation func(plugin string, operation Operation, took time.Duration, err error)
	// Mounted takes the time from the pod's asking for a volume until it had it, by kind.
	Mounted meter.TimingOf
}

// Operation is what is done to a volume.
type Operation string

// Operations, by the names of the reference kubelet.
const (
	OperationMount   Operation = "volume_mount"
	OperationMap     Operation = "map_volume"
	OperationUnmount Operation = "volume_unmount"
)

// Objects reads ConfigMaps and Secrets and tells of their changes. The pod must have been
// registered with it before it is mounted.
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

// Trust knows the cluster's trust bundles and tells of their changes.
type Trust interface {
	projected.Trust
	OnChange(func())
}

// Certificates has certificates issued for pods, and tells when requests were answered.
type Certificates interface {
	projected.Certificates
	OnChange(func())
	// Forget drops the keys of a pod that is gone.
	Forget(uid types.UID)
}

// Mounter reaches the kernel's mount table.
type Mounter interface {
	emptydir.Mounter
	Bind(fd int, target string) error
	Unmount(path string) error
	ForceUnmount(path string) error
	MountPoints(dir string) ([]string, error)
	SameFilesystemMount(path, dir string) (string, error)
	UnmountBeneath(dir string) error
}

// Quotas has the kernel count what is in volumes; quota.Projects are such.
type Quotas interface {
	emptydir.Quotas
	Used(dir string) (quota.Usage, bool)
	// Tidy forgets the volumes that are gone.
	ReleaseStale()
}

// Volumes is the reconciler. Its methods may be called from any goroutine; those for one
// pod are called by that pod's worker, one at a time.
type Volumes struct {
	cfg     Config
	deps    Deps
	plugins []plugin.Plugin
	drivers *flexvolume.Drivers

	mu      sync.Mutex
	pods    map[types.UID]*podVolumes
	devices map[deviceKey]*device
	// unmatched are pods with volumes whose devices are not known.
	unmatched map[types.UID]bool
	due       timetable
	// housekept says that orphans were looked for, settled that none can be left.
	housekept, settled bool
	// wake tells Run that due has changed.
	wake notify.Signal
	// retried is closed, and made anew, by every Retry.
	retried chan struct{}
	// operations are those that may outlive their caller: refreshes, and a set-up that
	// hangs in the kernel after its Mount has given up. None is begun once ended is set.
	operations sync.WaitGroup
	ended      bool
	// life ends when ended is set.
	life context.Context
	end  context.CancelFunc
}

// defaultMountTimeout is how long the reference kubelet waits for volumes.
const defaultMountTimeout = 2*time.Minute + 3*time.Second

const defaultHangPatience = 10 * time.Second

// finishTimeout bounds the wait for operations when the agent ends.
const finishTimeout = 10 * time.Second

// New checks its arguments and subscribes to object changes; it starts nothing.
func New(cfg Config, deps Deps) (*Volumes, error) {
	if !filepath.IsAbs(cfg.RootDir) {
		return nil, errors.New("make volumes: RootDir must be an absolute path")
	}
	if deps.Objects == nil || deps.Allocatable == nil || deps.Events == nil || deps.Clock == nil || deps.Log == nil {
		return nil, errors.New("make volumes: Objects, Allocatable, Events, Clock and Log are needed")
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
	v := &Volumes{
		cfg:     cfg,
		deps:    deps,
		plugins: newPlugins(cfg, deps),
		drivers: newDrivers(cfg, deps),
		pods:    map[types.UID]*podVolumes{},
		devices: map[deviceKey]*device{}, unmatched: map[types.UID]bool{},
		wake:    notify.New(),
		retried: make(chan struct{}),
	}
	v.life, v.end = context.WithCancel(context.Background())
	deps.Objects.OnChange(v.objectChanged)
	if deps.Trust != nil {
		deps.Trust.OnChange(func() { v.sourceChanged(showsTrust) })
	}
	if deps.Certificates != nil {
		deps.Certificates.OnChange(func() { v.sourceChanged(showsCertificate) })
	}
	return v, nil
}

// Run refreshes mounted content when it is due until ctx is done; it returns when no
// operation is under way.
func (v *Volumes) Run(ctx context.Context) error {
	if err := v.drivers.MakeDir(); err != nil {
		v.deps.Log.Warn("FlexVolume drivers cannot be installed", "err", err)
	}
	v.tidyQuotas()
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
		for _, key := range v.takeDue() {
			v.begin(func() { v.refresh(ctx, key) })
		}
	}
}

// begin runs an operation beside its caller. After the end it does nothing: whoever waits
// for the outcome sees its own context end.
func (v *Volumes) begin(operation func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.ended {
		v.operations.Go(operation)
	}
}

// finish waits for the operations under way, but not for ever: one may hang in the kernel.
func (v *Volumes) finish() error {
	v.mu.Lock()
	v.ended = true
	v.end()
	for _, pv := range v.pods {
		pv.end()
	}
	v.mu.Unlock()
	idle := make(chan struct{})
	go func() { v.operations.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-v.deps.Clock.After(finishTimeout):
		return fmt.Errorf("end volumes: an operation still hangs after %v", finishTimeout)
	}
}

// nextTimer waits for the first entry of the timetable; with none there is nothing to wait for.
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

func (v *Volumes) takeDue() []volumeKey {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.due.take(v.deps.Clock.Now())
}

// scheduleLocked sets when a volume is looked at next.
func (v *Volumes) scheduleLocked(key volumeKey, at time.Time) {
	v.due.set(key, at)
	v.wake.Notify()
}

func (v *Volumes) podDir(uid types.UID) string {
	return filepath.Join(v.cfg.RootDir, "pods", string(uid))
}
