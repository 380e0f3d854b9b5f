package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"

	"swiftlet/internal/volume/plugin"
)

// DeviceID names what the pods of the node share; a volume described in a pod shares nothing.
func (p *Plugin) DeviceID(_ context.Context, s plugin.Spec) (string, error) {
	if s.PV == nil {
		return "", nil
	}
	if from := persistent(s); !filepath.IsLocal(from.driver) || filepath.Base(from.driver) != from.driver {
		return "", said("driver name %q names no directory", from.driver)
	}
	return idOf(s), nil
}

// Stage has the driver make the volume ready for the pods of the node.
func (p *Plugin) Stage(ctx context.Context, r plugin.Request) error {
	if p.deps.Client == nil {
		return errNoAPI
	}
	c, err := p.connect(r.PV.Spec.CSI.Driver)
	if err != nil {
		return said("attacher.MountDevice failed to create newCsiDriverClient: %w", err)
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	able, err := c.capabilities(ctx)
	if err != nil {
		return err
	}
	if r.Block() {
		return p.stageRaw(ctx, c, able, r)
	}
	return p.stageMounted(ctx, c, able, r)
}

// stageMounted stages a volume with a file system. The note is on the disk before the
// driver is called: whatever happens then, it says how to undo it.
func (p *Plugin) stageMounted(ctx context.Context, c *client, able capabilities, r plugin.Request) error {
	path, _, err := p.stagingPath(idOf(r.Spec))
	if err != nil {
		return err
	}
	from := persistent(r.Spec)
	request := &csi.NodeStageVolumeRequest{
		VolumeId: from.handle, StagingTargetPath: path, VolumeContext: from.attributes,
		VolumeCapability: able.mountable(accessMode(r.Spec), from.fsType, mountFlags(r), r.FSGroup()),
	}
	if err := p.equip(ctx, able, r, request); err != nil {
		return err
	}
	if err := p.checkLabel(r, path); err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return said("attacher.MountDevice failed to create dir %q: %w", path, err)
	}
	if !able[canStage] {
		return nil
	}
	if err := (note{Driver: from.driver, Handle: from.handle, SELinux: r.Label}).write(filepath.Dir(path)); err != nil {
		return said("failed to save volume info data: %w", err)
	}
	if _, err := c.node.NodeStageVolume(ctx, request); err != nil {
		if final(err) {
			err = errors.Join(err, p.removeVolumeDir(path))
		}
		return err
	}
	return nil
}

// equip adds what the cluster holds for the driver.
func (p *Plugin) equip(ctx context.Context, able capabilities, r plugin.Request, request *csi.NodeStageVolumeRequest) (err error) {
	if request.PublishContext, err = p.publishContext(ctx, r.Spec); err != nil {
		return err
	}
	request.Secrets = map[string]string{}
	ref := r.PV.Spec.CSI.NodeStageSecretRef
	if ref == nil || !able[canStage] {
		return nil
	}
	if request.Secrets, err = p.secret(ctx, ref); err != nil {
		return plugin.RetryWithin(fmt.Errorf("fetching NodeStageSecretRef %s/%s failed: %w", ref.Namespace, ref.Name, err), attachWait)
	}
	return nil
}

// DeviceOf reads the volume's note, or else the mount table.
func (p *Plugin) DeviceOf(v plugin.Published) (string, error) {
	if v.Block {
		return rawID(v.Name), nil
	}
	n, ok, err := p.readNote(v.Dir(Name))
	if err != nil {
		return p.deviceByMount(v, err)
	}
	if !ok || n.LifecycleMode == storagev1.VolumeLifecycleEphemeral {
		return "", nil
	}
	return mountedID(n.Driver, n.Handle), nil
}

// Staged lists by the disk what is staged, also half way.
func (p *Plugin) Staged() ([]string, error) {
	drivers, err := names(p.dir())
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, d := range drivers {
		if d == devicesDir {
			continue
		}
		volumes, err := names(filepath.Join(p.dir(), d))
		if err != nil {
			return nil, err
		}
		for _, v := range volumes {
			ids = append(ids, deviceID(d, v, globalMountDir))
		}
	}
	raw, err := p.stagedRaw()
	return append(ids, raw...), err
}

// Unstage has the driver undo Stage, by what the disk shows.
func (p *Plugin) Unstage(ctx context.Context, id string) error {
	path, block, err := p.stagingPath(id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if block {
		return p.unstageRaw(ctx, path)
	}
	switch n, ok, err := p.readNote(filepath.Dir(path)); {
	case err != nil:
		if err := p.unmountAlone(path); err != nil {
			return err
		}
	case ok:
		if err := p.unstage(ctx, n, path); err != nil {
			return said("attacher.UnmountDevice failed: %w", err)
		}
	}
	if err := p.removeVolumeDir(path); err != nil {
		return said("failed to clean up global mount %s: %w", filepath.Dir(path), err)
	}
	return nil
}

// unstage calls the driver, if it is one that stages.
func (p *Plugin) unstage(ctx context.Context, n note, path string) error {
	c, err := p.connect(n.Driver)
	if err != nil {
		return err
	}
	defer c.close()
	able, err := c.capabilities(ctx)
	if err != nil || !able[canStage] {
		return err
	}
	_, err = c.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: n.Handle, StagingTargetPath: path})
	return err
}

// names lists a directory; none is an empty one.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all, err
}
