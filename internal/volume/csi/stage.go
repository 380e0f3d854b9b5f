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

// DeviceID identifies the staged volume. Inline volumes are not staged.
func (p *Plugin) DeviceID(_ context.Context, s plugin.Spec) (string, error) {
	if s.PV == nil {
		return "", nil
	}
	if from := persistentSource(s); !filepath.IsLocal(from.driver) || filepath.Base(from.driver) != from.driver {
		return "", errorf("driver name %q is not a valid directory name", from.driver)
	}
	return idOf(s), nil
}

// Stage calls NodeStageVolume.
func (p *Plugin) Stage(ctx context.Context, r plugin.Request) error {
	if p.deps.Client == nil {
		return errNoAPI
	}
	c, err := p.connect(r.PV.Spec.CSI.Driver)
	if err != nil {
		return errorf("attacher.MountDevice failed to create newCsiDriverClient: %w", err)
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	caps, err := c.capabilities(ctx)
	if err != nil {
		return err
	}
	if r.Block() {
		return p.stageRaw(ctx, c, caps, r)
	}
	return p.stageMounted(ctx, c, caps, r)
}

// stageMounted stages a volume with a file system. It stores the volume data first, so that Unstage
// can undo the call whatever happens.
func (p *Plugin) stageMounted(ctx context.Context, c *client, caps capabilities, r plugin.Request) error {
	path, _, err := p.stagingPath(idOf(r.Spec))
	if err != nil {
		return err
	}
	from := persistentSource(r.Spec)
	request := &csi.NodeStageVolumeRequest{
		VolumeId: from.handle, StagingTargetPath: path, VolumeContext: from.attributes,
		VolumeCapability: caps.mountable(accessMode(r.Spec), from.fsType, mountFlags(r), r.FSGroup()),
	}
	if err := p.addStageContext(ctx, caps, r, request); err != nil {
		return err
	}
	if err := p.checkLabel(r, path); err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return errorf("attacher.MountDevice failed to create dir %q: %w", path, err)
	}
	if !caps[canStage] {
		return nil
	}
	if err := (volumeData{Driver: from.driver, Handle: from.handle, SELinux: r.Label}).write(filepath.Dir(path)); err != nil {
		return errorf("failed to save volume info data: %w", err)
	}
	if _, err := c.node.NodeStageVolume(ctx, request); err != nil {
		if isFinal(err) {
			err = errors.Join(err, p.removeVolumeDir(path))
		}
		return err
	}
	return nil
}

// addStageContext adds the publish context and secrets.
func (p *Plugin) addStageContext(ctx context.Context, caps capabilities, r plugin.Request, request *csi.NodeStageVolumeRequest) (err error) {
	if request.PublishContext, err = p.publishContext(ctx, r.Spec); err != nil {
		return err
	}
	request.Secrets = map[string]string{}
	ref := r.PV.Spec.CSI.NodeStageSecretRef
	if ref == nil || !caps[canStage] {
		return nil
	}
	if request.Secrets, err = p.secret(ctx, ref); err != nil {
		return plugin.RetryWithin(fmt.Errorf("fetching NodeStageSecretRef %s/%s failed: %w", ref.Namespace, ref.Name, err), attachRetry)
	}
	return nil
}

// DeviceOf reads the volume data or, if it is unreadable, the mount table.
func (p *Plugin) DeviceOf(v plugin.Published) (string, error) {
	if v.Block {
		return rawID(v.Name), nil
	}
	n, ok, err := p.readVolumeData(v.Dir(Name))
	if err != nil {
		return p.deviceByMount(v, err)
	}
	if !ok || n.LifecycleMode == storagev1.VolumeLifecycleEphemeral {
		return "", nil
	}
	return mountedID(n.Driver, n.Handle), nil
}

// Staged lists what is staged, also partially, from what is on disk.
func (p *Plugin) Staged() ([]string, error) {
	drivers, err := listDir(p.dir())
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, d := range drivers {
		if d == devicesDir {
			continue
		}
		volumes, err := listDir(filepath.Join(p.dir(), d))
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

// Unstage unstages the volume, from what is on disk.
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
	switch n, ok, err := p.readVolumeData(filepath.Dir(path)); {
	case err != nil:
		if err := p.unmountWithoutDriver(path); err != nil {
			return err
		}
	case ok:
		if err := p.unstage(ctx, n, path); err != nil {
			return errorf("attacher.UnmountDevice failed: %w", err)
		}
	}
	if err := p.removeVolumeDir(path); err != nil {
		return errorf("failed to clean up global mount %s: %w", filepath.Dir(path), err)
	}
	return nil
}

// unstage calls NodeUnstageVolume if the driver supports it.
func (p *Plugin) unstage(ctx context.Context, n volumeData, path string) error {
	c, err := p.connect(n.Driver)
	if err != nil {
		return err
	}
	defer c.close()
	caps, err := c.capabilities(ctx)
	if err != nil || !caps[canStage] {
		return err
	}
	_, err = c.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: n.Handle, StagingTargetPath: path})
	return err
}

// listDir lists a directory. A missing one is empty.
func listDir(dir string) ([]string, error) {
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
