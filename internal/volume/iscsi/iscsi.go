// Package iscsi brings up volumes on disks of an iSCSI target, with the node's own iscsiadm.
// A disk is logged in to, formatted if it is empty, and mounted once for all pods.
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

	"swiftlet/internal/volume/disk"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/scsi"
)

// Name is the kind's qualified name.
const Name = "kubernetes.io/iscsi"

// callTimeout bounds one step, with all logins that it takes.
const callTimeout = 5 * time.Minute

// Mounter is what the plugin needs of the kernel.
type Mounter interface {
	disk.Mounter
	// SameFilesystemMount finds below dir the mount of what is also mounted at path.
	SameFilesystemMount(path, dir string) (string, error)
}

// Deps is what the plugin works with.
type Deps struct {
	RootDir string
	Mounter Mounter
	Tools   disk.Tools
	Host    scsi.Host
	// Secret reads what a volume refers to.
	Secret func(ctx context.Context, namespace, name string) (*v1.Secret, error)
	Clock  clock.Clock
	Log    *slog.Logger
}

// Plugin brings up iSCSI volumes.
type Plugin struct {
	deps  Deps
	disks disk.Disks
	// targets serialises logins and logouts at one target, whichever of its disks is meant.
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

// New makes the plugin.
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

// SetUp shows the disk's file system in the pod's directory.
func (p *Plugin) SetUp(_ context.Context, r plugin.Request) (plugin.Result, error) {
	from, dir := sourceOf(r.Spec), r.VolumeDir(Name)
	if err := p.disks.Publish(r, p.path(from.id(r.Spec)), dir, from.readOnly); err != nil {
		return plugin.Result{}, err
	}
	return plugin.Result{HostPath: dir, ReadOnly: from.readOnly, SELinuxRelabel: true}, nil
}

// MapDevice names the disk.
func (p *Plugin) MapDevice(_ context.Context, r plugin.Request) (plugin.Result, error) {
	return plugin.Result{HostPath: r.DevicePath, ReadOnly: r.ClaimReadOnly}, nil
}

// AttachName is the volume's name in the node's status.
func (p *Plugin) AttachName(_ context.Context, s plugin.Spec) (v1.UniqueVolumeName, error) {
	from := sourceOf(s)
	return v1.UniqueVolumeName(fmt.Sprintf("%s/%s:%s:%d", Name, from.TargetPortal, from.IQN, from.Lun)), nil
}

// Attached trusts the node's status: there is nothing to attach but by Connect.
func (p *Plugin) Attached(context.Context, plugin.Request) error { return nil }

// Stage mounts the disk that Connect found. A raw volume is ready as it is.
func (p *Plugin) Stage(_ context.Context, r plugin.Request) error {
	if r.Block() {
		return nil
	}
	from := sourceOf(r.Spec)
	return p.disks.Stage(r, p.path(from.id(r.Spec)), from.FSType, from.readOnly)
}

// Measure is how full the volume's file system is, or how large its disk.
func (p *Plugin) Measure(_ context.Context, r plugin.Request, at plugin.Result) (plugin.Usage, error) {
	if r.Block() {
		return mounts.DeviceSize(at.HostPath)
	}
	return mounts.FilesystemUsage(at.HostPath)
}

// source is what both ways to describe a volume have in common.
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

// defaultPort is that of targets that do not say.
const defaultPort = ":3260"

func withPort(portal string) string {
	if !strings.Contains(portal, ":") {
		return portal + defaultPort
	}
	return portal
}

// DeviceID names a disk by where it is mounted or held.
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

// locks are one lock per name.
type locks struct {
	mu    sync.Mutex
	named map[string]*sync.Mutex
}

// lock waits for the name's turn and returns what ends it. Names are few: they stay.
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
