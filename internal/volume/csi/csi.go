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
	"k8s.io/utils/clock"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/kubeclient"
	"swiftlet/internal/notify"
	"swiftlet/internal/pluginreg"
	"swiftlet/internal/require"
	"swiftlet/internal/volume/plugin"
)

// Name is the kind's qualified name.
const Name = "kubernetes.io/csi"

// callTimeout bounds the calls of a driver for one operation.
const callTimeout = 2 * time.Minute

// Config is fixed for the life of the agent.
type Config struct {
	// RootDir is the kubelet's, /var/lib/kubelet.
	RootDir  string
	NodeName string
	// RepublishPeriod is the period of NodePublishVolume for drivers with requiresRepublish.
	// Zero means a minute.
	RepublishPeriod time.Duration
}

// Deps are the dependencies of the plugin.
type Deps struct {
	// Client and Drivers are nil without an API server: then volumes can be unmounted, but not
	// mounted.
	Client kubeclient.Interface
	// Drivers returns the CSIDriver object of a driver, or a NotFound error.
	Drivers func(ctx context.Context, name string) (*storagev1.CSIDriver, error)
	Tokens  Tokens
	Mounts  Mounts
	Clock   clock.WithTicker
	Log     *slog.Logger
	// Registered is called after a driver was registered; may be nil.
	Registered func(driver string)
	// ObserveCall is called after every call of a driver, with its gRPC method and code; may be nil.
	ObserveCall func(driver, method, code string, took time.Duration)
}

// Tokens issues service account tokens.
type Tokens interface {
	Get(ctx context.Context, namespace, account string, request *authv1.TokenRequest) (kubeapi.Token, error)
}

// Mounts is the part of mounts.Kernel that the plugin uses.
type Mounts interface {
	Mounted(path string) (bool, error)
	// SameFilesystemMounts finds mount points below dir of the file system that is mounted at path.
	SameFilesystemMounts(path, dir string) ([]string, error)
	UnmountBeneath(dir string) error
}

// Plugin mounts volumes with CSI drivers.
type Plugin struct {
	cfg  Config
	deps Deps

	mu      sync.Mutex
	drivers map[string]driver
	// wake is notified when drivers have changed.
	wake notify.Signal

	readErrors loggedErrors

	// node serializes read-modify-write changes of the Node and CSINode objects.
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
	if !filepath.IsAbs(cfg.RootDir) {
		return nil, errors.New("new CSI plugin: RootDir must be an absolute path")
	}
	required := map[string]any{"NodeName": cfg.NodeName, "Mounts": deps.Mounts, "Clock": deps.Clock, "Log": deps.Log}
	if deps.Client != nil {
		required["Drivers"], required["Tokens"] = deps.Drivers, deps.Tokens
	}
	if err := require.Set("new CSI plugin", required); err != nil {
		return nil, err
	}
	if cfg.RepublishPeriod <= 0 {
		cfg.RepublishPeriod = time.Minute
	}
	return &Plugin{cfg: cfg, deps: deps, drivers: map[string]driver{}, wake: notify.New()}, nil
}

// Name is the qualified plugin name.
func (p *Plugin) Name() string { return Name }

// Handles reports whether the volume is a CSI volume.
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

// source is a volume of either kind: inline or persistent.
type source struct {
	driver     string
	handle     string
	fsType     string
	attributes map[string]string
	readOnly   bool
	ephemeral  bool // inline
}

func sourceOf(r plugin.Request) source {
	if r.PV != nil {
		s := persistentSource(r.Spec)
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

func persistentSource(s plugin.Spec) source {
	in := s.PV.Spec.CSI
	return source{driver: in.Driver, handle: in.VolumeHandle, fsType: in.FSType, attributes: in.VolumeAttributes}
}

// lifecycleMode is the lifecycle mode in the API.
func (s source) lifecycleMode() storagev1.VolumeLifecycleMode {
	if s.ephemeral {
		return storagev1.VolumeLifecycleEphemeral
	}
	return storagev1.VolumeLifecyclePersistent
}

// accessMode is the first access mode of the volume: CSI requests have one.
func accessMode(s plugin.Spec) v1.PersistentVolumeAccessMode {
	if s.PV != nil && len(s.PV.Spec.AccessModes) > 0 {
		return s.PV.Spec.AccessModes[0]
	}
	return v1.ReadWriteOnce
}

// errNoAPI is why CSI volumes cannot be mounted without an API server.
var errNoAPI = fmt.Errorf("%s: failed to get a kubernetes client", Name)

// errorf formats an error with the plugin name, as the reference kubelet does.
func errorf(format string, args ...any) error {
	return fmt.Errorf(Name+": "+format, args...)
}
