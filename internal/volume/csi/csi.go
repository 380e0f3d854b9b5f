package csi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/notify"
	"swiftlet/internal/pluginreg"
	"swiftlet/internal/volume/plugin"
)

// Name is the kind's qualified name.
const Name = "kubernetes.io/csi"

// callTimeout bounds everything that is asked of a driver for one step.
const callTimeout = 2 * time.Minute

// Config is fixed for the life of the agent.
type Config struct {
	// RootDir is the kubelet's, /var/lib/kubelet.
	RootDir  string
	NodeName string
	// RepublishPeriod is how often drivers that ask for it are told to publish again.
	// Zero means a minute.
	RepublishPeriod time.Duration
}

// Deps is what the plugin works with.
type Deps struct {
	// Client and Drivers are nil without an API server: then volumes can be taken down, but
	// not brought up.
	Client kubernetes.Interface
	// Drivers tells what the cluster knows of a driver, with a NotFound error for one that
	// it does not know.
	Drivers func(ctx context.Context, name string) (*storagev1.CSIDriver, error)
	Tokens  Tokens
	Mounts  Mounts
	Clock   clock.WithTicker
	Log     *slog.Logger
	// Registered is called after a driver has come; may be nil.
	Registered func(driver string)
	// Called is told of every call of a driver, with its gRPC method and code; may be nil.
	Called func(driver, method, code string, took time.Duration)
}

// Tokens issues service account tokens.
type Tokens interface {
	Get(ctx context.Context, namespace, account string, request *authv1.TokenRequest) (kubeapi.Token, error)
}

// Mounts looks at the kernel's mount table.
type Mounts interface {
	Mounted(path string) (bool, error)
	// SameFilesystemMounts finds below dir the mounts of the file system that is also mounted at path.
	SameFilesystemMounts(path, dir string) ([]string, error)
	UnmountBeneath(dir string) error
}

// Plugin is the kind of volumes that CSI drivers bring up.
type Plugin struct {
	cfg  Config
	deps Deps

	mu      sync.Mutex
	drivers map[string]driver
	// look tells Run that drivers have changed.
	look notify.Signal

	unreadable complaints

	// node serialises changes of the Node and CSINode objects, which are read, changed and
	// written back.
	node sync.Mutex
}

var (
	_ plugin.Plugin         = (*Plugin)(nil)
	_ plugin.AttachLimiter  = (*Plugin)(nil)
	_ plugin.Unpublisher    = (*Plugin)(nil)
	_ plugin.Stager         = (*Plugin)(nil)
	_ plugin.DeviceMatcher  = (*Plugin)(nil)
	_ plugin.BlockMapper    = (*Plugin)(nil)
	_ plugin.Attacher       = (*Plugin)(nil)
	_ plugin.Expander       = (*Plugin)(nil)
	_ plugin.UsageReporter  = (*Plugin)(nil)
	_ plugin.SELinuxMounter = (*Plugin)(nil)
	_ plugin.HealthReporter = (*Plugin)(nil)
	_ pluginreg.Handler     = (*Plugin)(nil)
)

// New checks its arguments; it starts nothing.
func New(cfg Config, deps Deps) (*Plugin, error) {
	if !filepath.IsAbs(cfg.RootDir) || cfg.NodeName == "" {
		return nil, errors.New("make CSI volumes: an absolute RootDir and NodeName are needed")
	}
	if deps.Mounts == nil || deps.Clock == nil || deps.Log == nil {
		return nil, errors.New("make CSI volumes: Mounts, Clock and Log are needed")
	}
	if deps.Client != nil && (deps.Drivers == nil || deps.Tokens == nil) {
		return nil, errors.New("make CSI volumes: with a Client, Drivers and Tokens are needed")
	}
	if cfg.RepublishPeriod <= 0 {
		cfg.RepublishPeriod = time.Minute
	}
	return &Plugin{cfg: cfg, deps: deps, drivers: map[string]driver{}, look: notify.New()}, nil
}

// Name is the directory of CSI volumes.
func (p *Plugin) Name() string { return Name }

// Handles reports whether a CSI driver brings up the volume.
func (p *Plugin) Handles(s plugin.Spec) bool {
	if s.PV != nil {
		return s.PV.Spec.CSI != nil
	}
	return s.Volume.CSI != nil
}

// DriverName is the driver that serves the volume.
func (p *Plugin) DriverName(s plugin.Spec) string {
	if s.PV != nil {
		return s.PV.Spec.CSI.Driver
	}
	return s.Volume.CSI.Driver
}

// source is what both ways to describe a volume have in common.
type source struct {
	driver     string
	handle     string
	fsType     string
	attributes map[string]string
	readOnly   bool
	ephemeral  bool // described in the pod, as long-lived as the pod
}

func sourceOf(r plugin.Request) source {
	if r.PV != nil {
		s := persistent(r.Spec)
		s.readOnly = r.ClaimReadOnly
		return s
	}
	in := r.Volume.CSI
	s := source{driver: in.Driver, handle: inlineHandle(string(r.Pod.UID), r.Volume.Name), attributes: in.VolumeAttributes, ephemeral: true}
	if in.FSType != nil {
		s.fsType = *in.FSType
	}
	if in.ReadOnly != nil {
		s.readOnly = *in.ReadOnly
	}
	return s
}

func persistent(s plugin.Spec) source {
	in := s.PV.Spec.CSI
	return source{driver: in.Driver, handle: in.VolumeHandle, fsType: in.FSType, attributes: in.VolumeAttributes}
}

// mode is the way the volume lives, in the API's words.
func (s source) mode() storagev1.VolumeLifecycleMode {
	if s.ephemeral {
		return storagev1.VolumeLifecycleEphemeral
	}
	return storagev1.VolumeLifecyclePersistent
}

// accessMode is the first of the volume's: drivers are told one.
func accessMode(s plugin.Spec) v1.PersistentVolumeAccessMode {
	if s.PV != nil && len(s.PV.Spec.AccessModes) > 0 {
		return s.PV.Spec.AccessModes[0]
	}
	return v1.ReadWriteOnce
}

// errNoAPI is why nothing can be brought up on a node that stands alone.
var errNoAPI = fmt.Errorf("%s: failed to get a kubernetes client", Name)

// said begins a message as users of the reference kubelet know it.
func said(format string, args ...any) error {
	return fmt.Errorf(Name+": "+format, args...)
}
