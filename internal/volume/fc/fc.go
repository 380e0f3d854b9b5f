// Package fc mounts Fibre Channel volumes. The fabric attaches the disks; the plugin finds them by
// their names, formats empty ones, and mounts each once for all pods.
package fc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/disk"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/scsi"
)

// Name is the kind's qualified name.
const Name = "kubernetes.io/fc"

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
}

// Plugin mounts Fibre Channel volumes.
type Plugin struct {
	deps  Deps
	disks disk.Disks

	mu sync.Mutex
	// raw are the device IDs of raw block volumes by volume name.
	raw map[string]string
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
	return &Plugin{deps: deps, disks: disk.Disks{Mounter: deps.Mounter, Tools: deps.Tools}, raw: map[string]string{}}
}

func (p *Plugin) Name() string { return Name }

func (p *Plugin) Handles(s plugin.Spec) bool { return source(s) != nil }

func source(s plugin.Spec) *v1.FCVolumeSource {
	return plugin.Source(s,
		func(v *v1.Volume) *v1.FCVolumeSource { return v.FC },
		func(pv *v1.PersistentVolume) *v1.FCVolumeSource { return pv.Spec.FC })
}

func readOnly(s plugin.Spec) bool {
	if s.PV != nil {
		return s.ClaimReadOnly
	}
	return s.Volume.FC.ReadOnly
}

// SetUp bind mounts the disk's file system in the pod's directory.
func (p *Plugin) SetUp(ctx context.Context, r plugin.Request) (plugin.Result, error) {
	id, err := p.DeviceID(ctx, r.Spec)
	if err != nil {
		return plugin.Result{}, err
	}
	dir := r.VolumeDir(Name)
	if err := p.disks.Publish(r, p.path(id), dir, readOnly(r.Spec)); err != nil {
		return plugin.Result{}, err
	}
	return plugin.Result{HostPath: dir, ReadOnly: readOnly(r.Spec), SELinuxRelabel: true}, nil
}

// MapDevice returns the disk.
func (p *Plugin) MapDevice(_ context.Context, r plugin.Request) (plugin.Result, error) {
	return plugin.Result{HostPath: r.DevicePath, ReadOnly: r.ClaimReadOnly}, nil
}

// AttachName is the volume's name in the node's status.
func (p *Plugin) AttachName(_ context.Context, s plugin.Spec) (v1.UniqueVolumeName, error) {
	in := source(s)
	if len(in.TargetWWNs) != 0 && in.Lun != nil {
		return v1.UniqueVolumeName(fmt.Sprintf("%s/%v:%v", Name, in.TargetWWNs, *in.Lun)), nil
	}
	return v1.UniqueVolumeName(fmt.Sprintf("%s/%v", Name, in.WWIDs)), nil
}

// Attached relies on the node's status.
func (p *Plugin) Attached(context.Context, plugin.Request) error { return nil }

// Stage mounts the disk that Connect found. A raw block volume needs no staging.
func (p *Plugin) Stage(ctx context.Context, r plugin.Request) error {
	if r.Block() {
		return nil
	}
	id, err := p.DeviceID(ctx, r.Spec)
	if err != nil {
		return err
	}
	return p.disks.Stage(r, p.path(id), source(r.Spec).FSType, readOnly(r.Spec))
}

// Measure is the usage of the volume's file system, or the size of its disk.
func (p *Plugin) Measure(_ context.Context, r plugin.Request, at plugin.Result) (pod.VolumeUsage, error) {
	if r.Block() {
		return mounts.DeviceSize(at.HostPath)
	}
	return mounts.FilesystemUsage(at.HostPath)
}

// DeviceID identifies a disk by its directory.
func (p *Plugin) DeviceID(_ context.Context, s plugin.Spec) (string, error) {
	name, err := nameOf(source(s))
	if err != nil {
		return "", err
	}
	id := name.dirName()
	if strings.Contains(id, "/") || !filepath.IsLocal(id) || id == plugin.DevicesDir {
		return "", errors.New("fc: names of disks must not contain a slash")
	}
	if !s.Block() {
		return id, nil
	}
	id = filepath.Join(plugin.DevicesDir, id)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.raw[s.Name()] = id // for MapDir, which has the volume's name only
	return id, nil
}

func (p *Plugin) dir() string { return filepath.Join(p.deps.RootDir, "plugins", Name) }

func (p *Plugin) path(id string) string { return filepath.Join(p.dir(), id) }
