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

// MapDir holds the links to a raw block volume.
func (p *Plugin) MapDir(volume string) string { return filepath.Join(p.rawDir(volume), "dev") }

// stageRaw has the driver make a raw block volume ready. The note is beside the staging
// directory, which belongs to the driver.
func (p *Plugin) stageRaw(ctx context.Context, c *client, able capabilities, r plugin.Request) error {
	from := persistent(r.Spec)
	path, _, err := p.stagingPath(rawID(r.PV.Name))
	if err != nil {
		return err
	}
	data := filepath.Join(p.rawDir(r.PV.Name), "data")
	if err := os.MkdirAll(data, 0o750); err != nil {
		return said("failed to create data dir %s: %w", data, err)
	}
	n := note{
		Volume: r.PV.Name, Handle: from.handle, Driver: from.driver, NodeName: p.cfg.NodeName,
		AttachmentID: attachmentName(from.handle, from.driver, p.cfg.NodeName),
	}
	if err := n.write(data); err != nil {
		return said("csi.NewBlockVolumeMapper failed to save volume info data: %w", err)
	}
	if !able[canStage] {
		return nil
	}
	request := &csi.NodeStageVolumeRequest{
		VolumeId: from.handle, StagingTargetPath: path, VolumeContext: from.attributes,
		VolumeCapability: able.raw(accessMode(r.Spec)),
	}
	if err := p.equip(ctx, able, r, request); err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return said("blockMapper.stageVolumeForBlock failed to create dir %s: %w", path, err)
	}
	if _, err := c.node.NodeStageVolume(ctx, request); err != nil {
		if final(err) {
			err = errors.Join(err, p.removeRaw(r.PV.Name))
		}
		return err
	}
	return nil
}

// MapDevice has the driver make the device appear in a directory of its own outside of the pod.
func (p *Plugin) MapDevice(ctx context.Context, r plugin.Request) (plugin.Result, error) {
	if p.deps.Client == nil {
		return plugin.Result{}, errNoAPI
	}
	from := sourceOf(r)
	c, err := p.connect(from.driver)
	if err != nil {
		return plugin.Result{}, said("blockMapper.MapPodDevice failed to get CSI client: %w", err)
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	able, err := c.capabilities(ctx)
	if err != nil {
		return plugin.Result{}, err
	}
	request := &csi.NodePublishVolumeRequest{
		VolumeId: from.handle, Readonly: from.readOnly,
		TargetPath:       p.rawPublishPath(r),
		VolumeCapability: able.raw(accessMode(r.Spec)),
	}
	if request.StagingTargetPath, _, err = p.stagingPath(rawID(r.PV.Name)); err != nil {
		return plugin.Result{}, err
	}
	if err := p.informRaw(ctx, r, from, request); err != nil {
		return plugin.Result{}, err
	}
	if err := os.MkdirAll(filepath.Dir(request.TargetPath), 0o750); err != nil {
		return plugin.Result{}, said("blockMapper.publishVolumeForBlock failed to create dir %s: %w", filepath.Dir(request.TargetPath), err)
	}
	if _, err := c.node.NodePublishVolume(ctx, request); err != nil {
		return plugin.Result{}, err
	}
	return plugin.Result{HostPath: request.TargetPath, ReadOnly: from.readOnly}, nil
}

// rawPublishPath is where the driver makes the pod's device appear.
func (p *Plugin) rawPublishPath(r plugin.Request) string {
	return filepath.Join(p.rawPublishDir(r.PV.Name), string(r.Pod.UID))
}

// informRaw adds what the driver gets for a raw block volume: no tokens.
func (p *Plugin) informRaw(ctx context.Context, r plugin.Request, from source, request *csi.NodePublishVolumeRequest) (err error) {
	if request.PublishContext, err = p.publishContext(ctx, r.Spec); err != nil {
		return said("blockMapper.MapPodDevice failed to get volume attachment: %w", err)
	}
	if request.Secrets, err = p.publishSecrets(ctx, r); err != nil {
		return err
	}
	request.VolumeContext = maps.Clone(from.attributes)
	known, err := p.described(ctx, from.driver)
	if err != nil {
		return said("blockMapper.publishVolumeForBlock failed to assemble volume attributes: %w", err)
	}
	if known != nil && known.Spec.PodInfoOnMount != nil && *known.Spec.PodInfoOnMount {
		if request.VolumeContext == nil {
			request.VolumeContext = map[string]string{}
		}
		maps.Copy(request.VolumeContext, podInfo(r.Pod, false))
	}
	return nil
}

// tearDownRaw unpublishes the pod's device. Even one that is not there any more: an earlier
// call that was given up may still be at work in the driver.
func (p *Plugin) tearDownRaw(ctx context.Context, v plugin.Published) error {
	path := filepath.Join(p.rawPublishDir(v.Name), string(v.PodUID))
	n, ok, err := p.readNote(filepath.Join(p.rawDir(v.Name), "data"))
	if err != nil {
		return p.withdrawAlone(path)
	}
	if !ok {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil // never published
		}
		return said("unmapper failed to load volume data file of volume %s, which is published at %s", v.Name, path)
	}
	if err := p.unpublish(ctx, n, path); err != nil {
		return said("blockMapper.unpublishVolumeForBlock failed: %w", err)
	}
	return nil
}

// unstageRaw undoes stageRaw. A publication that was cut short before the pod's directory told
// of it is undone, too: no pod uses the volume any more.
func (p *Plugin) unstageRaw(ctx context.Context, path string) error {
	volume := filepath.Base(path)
	left, err := names(p.rawPublishDir(volume))
	if err != nil {
		return err
	}
	n, ok, err := p.readNote(filepath.Join(p.rawDir(volume), "data"))
	if err != nil {
		return p.unstageRawAlone(path, left)
	}
	for _, uid := range left {
		if !ok {
			return said("unmapper failed to load volume data file of volume %s, which is published for pod %s", volume, uid)
		}
		if err := p.unpublish(ctx, n, filepath.Join(p.rawPublishDir(volume), uid)); err != nil {
			return said("blockMapper.unpublishVolumeForBlock failed: %w", err)
		}
	}
	if _, err := os.Lstat(path); err == nil {
		if !ok {
			return said("unmapper failed to load volume data file of volume %s, which is staged at %s", volume, path)
		}
		if err := p.unstage(ctx, n, path); err != nil {
			return said("blockMapper.unstageVolumeForBlock failed: %w", err)
		}
	}
	return p.removeRaw(volume)
}

// withdrawAlone takes away a pod's device without asking the driver.
func (p *Plugin) withdrawAlone(path string) error {
	if err := p.unmountAlone(path); err != nil {
		return err
	}
	if err := remove(path); err != nil {
		return said("failed to remove device %s: %w", path, err)
	}
	return nil
}

// unstageRawAlone is unstageRaw where the note cannot be read. left are the pods that the
// volume is still published for.
func (p *Plugin) unstageRawAlone(path string, left []string) error {
	volume := filepath.Base(path)
	for _, uid := range left {
		if err := p.withdrawAlone(filepath.Join(p.rawPublishDir(volume), uid)); err != nil {
			return err
		}
	}
	if err := p.unmountAlone(path); err != nil {
		return err
	}
	return p.removeRaw(volume)
}

// removeRaw removes all that was made for a raw block volume, and nothing through a mount.
func (p *Plugin) removeRaw(volume string) error {
	publish := p.rawPublishDir(volume)
	if err := os.Remove(publish); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove publish directory: %w", err)
	}
	// The driver may have left something of its own in the staging directory.
	staging := filepath.Join(p.dir(), devicesDir, "staging", volume)
	for _, dir := range []string{staging, p.rawDir(volume)} {
		if err := safepath.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove directory of raw block volume: %w", err)
		}
	}
	return nil
}

// stagedRaw lists raw block volumes, those that have no more than a note, too.
func (p *Plugin) stagedRaw() ([]string, error) {
	staged, err := names(filepath.Join(p.dir(), devicesDir, "staging"))
	if err != nil {
		return nil, err
	}
	noted, err := names(filepath.Join(p.dir(), devicesDir))
	if err != nil {
		return nil, err
	}
	volumes := slices.DeleteFunc(append(staged, noted...), func(name string) bool { return name == "staging" || name == "publish" })
	slices.Sort(volumes)
	var ids []string
	for _, v := range slices.Compact(volumes) {
		ids = append(ids, rawID(v))
	}
	return ids, nil
}
