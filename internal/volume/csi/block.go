package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/safepath"
)

// MapDir has one bind mount of the raw block volume per pod.
func (p *Plugin) MapDir(volume string) string { return filepath.Join(p.rawDir(volume), "dev") }

// stageRaw stages a raw block volume. The volume data is not in the staging directory, which belongs
// to the driver.
func (p *Plugin) stageRaw(ctx context.Context, c *client, caps capabilities, r plugin.Request) error {
	from := persistentSource(r.Spec)
	path, _, err := p.stagingPath(rawID(r.PV.Name))
	if err != nil {
		return err
	}
	data := filepath.Join(p.rawDir(r.PV.Name), "data")
	if err := os.MkdirAll(data, 0o750); err != nil {
		return errorf("failed to create data dir %s: %w", data, err)
	}
	n := volumeData{
		Volume: r.PV.Name, Handle: from.handle, Driver: from.driver, NodeName: p.cfg.NodeName,
		AttachmentID: attachmentName(from.handle, from.driver, p.cfg.NodeName),
	}
	if err := n.write(data); err != nil {
		return errorf("csi.NewBlockVolumeMapper failed to save volume info data: %w", err)
	}
	if !caps[canStage] {
		return nil
	}
	request := &csi.NodeStageVolumeRequest{
		VolumeId: from.handle, StagingTargetPath: path, VolumeContext: from.attributes,
		VolumeCapability: caps.raw(accessMode(r.Spec)),
	}
	if err := p.addStageContext(ctx, caps, r, request); err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return errorf("blockMapper.stageVolumeForBlock failed to create dir %s: %w", path, err)
	}
	if _, err := c.node.NodeStageVolume(ctx, request); err != nil {
		if isFinal(err) {
			err = errors.Join(err, p.removeRaw(r.PV.Name))
		}
		return err
	}
	return nil
}

// MapDevice publishes the device in a directory outside of the pod's.
func (p *Plugin) MapDevice(ctx context.Context, r plugin.Request) (plugin.Result, error) {
	if p.deps.Client == nil {
		return plugin.Result{}, errNoAPI
	}
	from := sourceOf(r)
	c, err := p.connect(from.driver)
	if err != nil {
		return plugin.Result{}, errorf("blockMapper.MapPodDevice failed to get CSI client: %w", err)
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	caps, err := c.capabilities(ctx)
	if err != nil {
		return plugin.Result{}, err
	}
	request := &csi.NodePublishVolumeRequest{
		VolumeId: from.handle, Readonly: from.readOnly,
		TargetPath:       p.rawPublishPath(r),
		VolumeCapability: caps.raw(accessMode(r.Spec)),
	}
	if request.StagingTargetPath, _, err = p.stagingPath(rawID(r.PV.Name)); err != nil {
		return plugin.Result{}, err
	}
	if err := p.addBlockPublishContext(ctx, r, from, request); err != nil {
		return plugin.Result{}, err
	}
	if err := os.MkdirAll(filepath.Dir(request.TargetPath), 0o750); err != nil {
		return plugin.Result{}, errorf("blockMapper.publishVolumeForBlock failed to create dir %s: %w", filepath.Dir(request.TargetPath), err)
	}
	if _, err := c.node.NodePublishVolume(ctx, request); err != nil {
		return plugin.Result{}, err
	}
	return plugin.Result{HostPath: request.TargetPath, ReadOnly: from.readOnly}, nil
}

// rawPublishPath is where the driver publishes the pod's device.
func (p *Plugin) rawPublishPath(r plugin.Request) string {
	return filepath.Join(p.rawPublishDir(r.PV.Name), string(r.Pod.UID))
}

// addBlockPublishContext adds the contexts and secrets of a raw block volume, without tokens.
func (p *Plugin) addBlockPublishContext(ctx context.Context, r plugin.Request, from source, request *csi.NodePublishVolumeRequest) (err error) {
	if request.PublishContext, err = p.publishContext(ctx, r.Spec); err != nil {
		return errorf("blockMapper.MapPodDevice failed to get volume attachment: %w", err)
	}
	if request.Secrets, err = p.publishSecrets(ctx, r); err != nil {
		return err
	}
	request.VolumeContext = maps.Clone(from.attributes)
	known, err := p.driverObject(ctx, from.driver)
	if err != nil {
		return errorf("blockMapper.publishVolumeForBlock failed to assemble volume attributes: %w", err)
	}
	if known != nil && known.Spec.PodInfoOnMount != nil && *known.Spec.PodInfoOnMount {
		if request.VolumeContext == nil {
			request.VolumeContext = map[string]string{}
		}
		maps.Copy(request.VolumeContext, podInfo(r.Pod, false))
	}
	return nil
}

// tearDownRaw unpublishes the pod's device, even if it does not exist: an earlier call that timed out
// may still be in progress in the driver.
func (p *Plugin) tearDownRaw(ctx context.Context, v plugin.Published) error {
	path := filepath.Join(p.rawPublishDir(v.Name), string(v.PodUID))
	n, ok, err := p.readVolumeData(filepath.Join(p.rawDir(v.Name), "data"))
	if err != nil {
		return p.removeDeviceWithoutDriver(path)
	}
	if !ok {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil // never published
		}
		return errorf("unmapper failed to load volume data file of volume %s, which is published at %s", v.Name, path)
	}
	if err := p.unpublish(ctx, n, path); err != nil {
		return errorf("blockMapper.unpublishVolumeForBlock failed: %w", err)
	}
	return nil
}

// unstageRaw undoes stageRaw. It also unpublishes devices whose publication was interrupted before
// the link in the pod's directory was created: no pod uses the volume any more.
func (p *Plugin) unstageRaw(ctx context.Context, path string) error {
	volume := filepath.Base(path)
	left, err := listDir(p.rawPublishDir(volume))
	if err != nil {
		return err
	}
	n, ok, err := p.readVolumeData(filepath.Join(p.rawDir(volume), "data"))
	if err != nil {
		return p.unstageRawWithoutDriver(path, left)
	}
	for _, uid := range left {
		if !ok {
			return errorf("unmapper failed to load volume data file of volume %s, which is published for pod %s", volume, uid)
		}
		if err := p.unpublish(ctx, n, filepath.Join(p.rawPublishDir(volume), uid)); err != nil {
			return errorf("blockMapper.unpublishVolumeForBlock failed: %w", err)
		}
	}
	if _, err := os.Lstat(path); err == nil {
		if !ok {
			return errorf("unmapper failed to load volume data file of volume %s, which is staged at %s", volume, path)
		}
		if err := p.unstage(ctx, n, path); err != nil {
			return errorf("blockMapper.unstageVolumeForBlock failed: %w", err)
		}
	}
	return p.removeRaw(volume)
}

// removeDeviceWithoutDriver unmounts and removes a pod's device without a call of the driver.
func (p *Plugin) removeDeviceWithoutDriver(path string) error {
	if err := p.unmountWithoutDriver(path); err != nil {
		return err
	}
	if err := remove(path); err != nil {
		return errorf("failed to remove device %s: %w", path, err)
	}
	return nil
}

// unstageRawWithoutDriver is unstageRaw for unreadable volume data. left are the pods that the volume
// is still published for.
func (p *Plugin) unstageRawWithoutDriver(path string, left []string) error {
	volume := filepath.Base(path)
	for _, uid := range left {
		if err := p.removeDeviceWithoutDriver(filepath.Join(p.rawPublishDir(volume), uid)); err != nil {
			return err
		}
	}
	if err := p.unmountWithoutDriver(path); err != nil {
		return err
	}
	return p.removeRaw(volume)
}

// removeRaw removes all directories of a raw block volume, and nothing through a mount point.
func (p *Plugin) removeRaw(volume string) error {
	publish := p.rawPublishDir(volume)
	if err := os.Remove(publish); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove publish directory: %w", err)
	}
	// The driver may have left files in the staging directory.
	staging := filepath.Join(p.dir(), devicesDir, "staging", volume)
	for _, dir := range []string{staging, p.rawDir(volume)} {
		if err := safepath.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove directory of raw block volume: %w", err)
		}
	}
	return nil
}

// stagedRaw lists raw block volumes, also those with volume data only.
func (p *Plugin) stagedRaw() ([]string, error) {
	staged, err := listDir(filepath.Join(p.dir(), devicesDir, "staging"))
	if err != nil {
		return nil, err
	}
	withData, err := listDir(filepath.Join(p.dir(), devicesDir))
	if err != nil {
		return nil, err
	}
	volumes := slices.DeleteFunc(append(staged, withData...), func(name string) bool { return name == "staging" || name == "publish" })
	slices.Sort(volumes)
	var ids []string
	for _, v := range slices.Compact(volumes) {
		ids = append(ids, rawID(v))
	}
	return ids, nil
}
