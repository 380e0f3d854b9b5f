// Package nfs mounts NFS volumes with the node's mount.nfs.
package nfs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/safepath"
)

// Name is the kind's qualified name.
const Name = "kubernetes.io/nfs"

// mountHelper is the program that mount(8) runs for NFS.
const mountHelper = "mount.nfs"

// unmountTimeout is how long an unmount may take before it is forced.
const unmountTimeout = time.Minute

// Mounter is the part of mounts.Kernel that the plugin uses.
type Mounter interface {
	Mounted(path string) (bool, error)
	Unmount(path string) error
	// ForceUnmount unmounts a file system whose server does not answer.
	ForceUnmount(path string) error
	MountPoints(dir string) ([]string, error)
}

// Tools runs the node's programs.
type Tools interface {
	Require(tool string) error
	Mount(source, target, fileSystem string, options []string) error
}

// Deps are the dependencies of the plugin.
type Deps struct {
	Mounter Mounter
	Tools   Tools
	Clock   clock.Clock
}

// Plugin mounts NFS volumes.
type Plugin struct{ deps Deps }

// New returns the plugin.
func New(deps Deps) *Plugin { return &Plugin{deps} }

func (p *Plugin) Name() string { return Name }

func (p *Plugin) Handles(s plugin.Spec) bool { return source(s) != nil }

func source(s plugin.Spec) *v1.NFSVolumeSource {
	return plugin.Source(s,
		func(v *v1.Volume) *v1.NFSVolumeSource { return v.NFS },
		func(pv *v1.PersistentVolume) *v1.NFSVolumeSource { return pv.Spec.NFS })
}

// SetUp mounts the export in the pod's directory. It does not change owners: the server decides them.
func (p *Plugin) SetUp(_ context.Context, r plugin.Request) (plugin.Result, error) {
	src, dir := source(r.Spec), r.VolumeDir(Name)
	result := plugin.Result{HostPath: dir, ReadOnly: src.ReadOnly || r.ClaimReadOnly}
	mounted, err := p.deps.Mounter.Mounted(dir)
	if err != nil || mounted {
		return result, err
	}
	if err := p.deps.Tools.Require(mountHelper); err != nil {
		return plugin.Result{}, err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return plugin.Result{}, fmt.Errorf("create volume directory: %w", err)
	}
	options := slices.Clone(r.MountOptions())
	if result.ReadOnly && !slices.Contains(options, "ro") {
		options = append(options, "ro")
	}
	if err := p.deps.Tools.Mount(host(src.Server)+":"+src.Path, dir, "nfs", options); err != nil {
		// The empty directory must not be mistaken for the volume.
		return plugin.Result{}, errors.Join(err, p.deps.Mounter.Unmount(dir), safepath.RemoveAll(dir))
	}
	return result, nil
}

// host is a server's name in the syntax of mount(8).
func host(server string) string {
	if a, err := netip.ParseAddr(server); err == nil && a.Is6() {
		return "[" + server + "]"
	}
	return server
}

// TearDown unmounts the volume, by force if its server does not answer. It reads the mount table and
// does not access the directory itself, which may hang.
func (p *Plugin) TearDown(ctx context.Context, v plugin.Published) error {
	dir := v.Dir(Name)
	points, err := p.deps.Mounter.MountPoints(filepath.Dir(dir))
	if err != nil {
		return err
	}
	for _, point := range points {
		if name := filepath.Base(dir); !strings.HasSuffix(point, "/"+filepath.Join(plugin.DirName(Name), name)) {
			continue
		}
		if err := p.unmount(ctx, point); err != nil {
			return err
		}
	}
	return safepath.RemoveAll(dir)
}

func (p *Plugin) unmount(ctx context.Context, point string) error {
	done := make(chan error, 1)
	// It may hang in the kernel past the timeout; a forced unmount ends it.
	go func() { done <- p.deps.Mounter.Unmount(point) }()
	timer := p.deps.Clock.NewTimer(unmountTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("unmount %s: %w", point, ctx.Err())
	case <-timer.C():
		return p.deps.Mounter.ForceUnmount(point)
	}
}

// Measure is the usage of the exported file system.
func (p *Plugin) Measure(_ context.Context, _ plugin.Request, at plugin.Result) (pod.VolumeUsage, error) {
	return mounts.FilesystemUsage(at.HostPath)
}
