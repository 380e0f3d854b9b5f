// Package iscsi mounts iSCSI volumes with the node's iscsiadm. It logs in to the target, formats an
// empty disk, and mounts it once for all pods.
package iscsi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/disk"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/scsi"
)

// Name is the kind's qualified name.
const Name = "kubernetes.io/iscsi"

// callTimeout bounds one operation with all its logins.
const callTimeout = 5 * time.Minute

// Mounter is the part of mounts.Kernel that the plugin uses.
type Mounter interface {
	disk.Mounter
	// SameFilesystemMount finds a mount point below dir of the file system that is mounted at path.
	SameFilesystemMount(path, dir string) (string, error)
}

// Deps are the dependencies of the plugin.
type Deps struct {
	RootDir string
	Mounter Mounter
	Tools   disk.Tools
	Host    scsi.Host
	// Secret reads the Secret of a volume.
	Secret func(ctx context.Context, namespace, name string) (*v1.Secret, error)
	Clock  clock.Clock
	Log    *slog.Logger
	// Databases are the directories where iscsiadm may have its records; nil means the usual ones.
	Databases []string
}

// Plugin mounts iSCSI volumes.
type Plugin struct {
	deps  Deps
	disks disk.Disks
	// targets serializes logins and logouts per target.
	targets locks
}

var (
	_ plugin.Plugin        = (*Plugin)(nil)
	_ plugin.Stager        = (*Plugin)(nil)
	_ plugin.Attacher      = (*Plugin)(nil)
	_ plugin.Connector     = (*Plugin)(nil)
	_ plugin.BlockMapper   = (*Plugin)(nil)
	_ plugin.MapDirFinder  = (*Plugin)(nil)
	_ plugin.UsageReporter = (*Plugin)(nil)
)

// New returns the plugin.
func New(deps Deps) *Plugin {
	return &Plugin{deps: deps, disks: disk.Disks{Mounter: deps.Mounter, Tools: deps.Tools}}
}

func (p *Plugin) Name() string { return Name }

func (p *Plugin) Handles(s plugin.Spec) bool {
	if s.PV != nil {
		return s.PV.Spec.ISCSI != nil
	}
	return s.Volume.ISCSI != nil
}

// SetUp bind mounts the disk's file system in the pod's directory.
func (p *Plugin) SetUp(_ context.Context, r plugin.Request) (plugin.Result, error) {
	from, dir := sourceOf(r.Spec), r.VolumeDir(Name)
	if err := p.disks.Publish(r, p.path(from.id(r.Spec)), dir, from.readOnly); err != nil {
		return plugin.Result{}, err
	}
	return plugin.Result{HostPath: dir, ReadOnly: from.readOnly, SELinuxRelabel: true}, nil
}

// MapDevice returns the disk.
func (p *Plugin) MapDevice(_ context.Context, r plugin.Request) (plugin.Result, error) {
	return plugin.Result{HostPath: r.DevicePath, ReadOnly: r.ClaimReadOnly}, nil
}

// AttachName is the volume's name in the node's status.
func (p *Plugin) AttachName(_ context.Context, s plugin.Spec) (v1.UniqueVolumeName, error) {
	from := sourceOf(s)
	return v1.UniqueVolumeName(fmt.Sprintf("%s/%s:%s:%d", Name, from.TargetPortal, from.IQN, from.Lun)), nil
}

// Attached relies on the node's status: Connect does the rest.
func (p *Plugin) Attached(context.Context, plugin.Request) error { return nil }

// Stage mounts the disk that Connect found. A raw block volume needs no staging.
func (p *Plugin) Stage(_ context.Context, r plugin.Request) error {
	if r.Block() {
		return nil
	}
	from := sourceOf(r.Spec)
	return p.disks.Stage(r, p.path(from.id(r.Spec)), from.FSType, from.readOnly)
}

// Measure is the usage of the volume's file system, or the size of its disk.
func (p *Plugin) Measure(_ context.Context, r plugin.Request, at plugin.Result) (pod.VolumeUsage, error) {
	if r.Block() {
		return mounts.DeviceSize(at.HostPath)
	}
	return mounts.FilesystemUsage(at.HostPath)
}

// source is a volume of either kind: inline or persistent.
type source struct {
	v1.ISCSIVolumeSource
	readOnly        bool
	secret          string
	secretNamespace string // "" for the pod's
}

func sourceOf(s plugin.Spec) source {
	if s.PV == nil {
		from := source{ISCSIVolumeSource: *s.Volume.ISCSI, readOnly: s.Volume.ISCSI.ReadOnly}
		if ref := s.Volume.ISCSI.SecretRef; ref != nil {
			from.secret = ref.Name
		}
		return from
	}
	in := s.PV.Spec.ISCSI
	from := source{readOnly: s.ClaimReadOnly, ISCSIVolumeSource: v1.ISCSIVolumeSource{
		TargetPortal: in.TargetPortal, IQN: in.IQN, Lun: in.Lun, ISCSIInterface: in.ISCSIInterface, FSType: in.FSType,
		Portals: in.Portals, DiscoveryCHAPAuth: in.DiscoveryCHAPAuth, SessionCHAPAuth: in.SessionCHAPAuth, InitiatorName: in.InitiatorName,
	}}
	if in.SecretRef != nil {
		from.secret, from.secretNamespace = in.SecretRef.Name, in.SecretRef.Namespace
	}
	return from
}

// defaultPort is the default port of a portal.
const defaultPort = ":3260"

func withPort(portal string) string {
	if !strings.Contains(portal, ":") {
		return portal + defaultPort
	}
	return portal
}

// DeviceID identifies a disk by its directory.
func (p *Plugin) DeviceID(_ context.Context, s plugin.Spec) (string, error) {
	id := sourceOf(s).id(s)
	depth := 1
	if s.Block() {
		depth = 2
	}
	if !filepath.IsLocal(id) || filepath.Clean(id) != id || strings.Count(id, "/") != depth {
		return "", errors.New("iscsi: portal, target and interface must not contain a slash")
	}
	return id, nil
}

// locks has one mutex per name.
type locks struct {
	mu    sync.Mutex
	named map[string]*sync.Mutex
}

// lock locks the mutex of the name. There are few names, so they are not removed.
func (l *locks) lock(name string) (unlock func()) {
	l.mu.Lock()
	if l.named == nil {
		l.named = map[string]*sync.Mutex{}
	}
	one := l.named[name]
	if one == nil {
		one = &sync.Mutex{}
		l.named[name] = one
	}
	l.mu.Unlock()
	one.Lock()
	return one.Unlock
}
