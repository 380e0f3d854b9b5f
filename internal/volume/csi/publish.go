package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"swiftlet/internal/volume/ownership"
	"swiftlet/internal/volume/plugin"
)

// SetUp publishes the volume in the pod's directory.
func (p *Plugin) SetUp(ctx context.Context, r plugin.Request) (plugin.Result, error) {
	if p.deps.Client == nil {
		return plugin.Result{}, errNoAPI
	}
	from := sourceOf(r)
	c, err := p.connect(from.driver)
	if err != nil {
		return plugin.Result{}, errorf("mounter.SetUpAt failed to get CSI client: %w", err)
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	known, err := p.driverObject(ctx, from.driver)
	if err != nil {
		return plugin.Result{}, errorf("mounter.SetupAt failed to check volume lifecycle mode: %w", err)
	}
	if err := checkLifecycleMode(known, from); err != nil {
		return plugin.Result{}, errorf("mounter.SetupAt failed to check volume lifecycle mode: %w", err)
	}
	caps, err := c.capabilities(ctx)
	if err != nil {
		return plugin.Result{}, err
	}
	request, err := p.publishRequest(ctx, caps, known, r, from)
	if err != nil {
		return plugin.Result{}, err
	}
	if err := p.publish(ctx, c, r, from, request); err != nil {
		return plugin.Result{}, err
	}
	if group := r.FSGroup(); group != nil && !caps[canMountGroup] && appliesFSGroup(known, r, from) {
		if err := r.ChangeGroup(request.TargetPath, ownership.Group{ID: *group, Policy: r.FSGroupPolicy()}); err != nil {
			return plugin.Result{}, fmt.Errorf("applyFSGroup failed for vol %s: %w", from.handle, err)
		}
	}
	result := plugin.Result{HostPath: request.TargetPath, ReadOnly: from.readOnly, SELinuxRelabel: r.Label == ""}
	if known != nil && known.Spec.RequiresRepublish != nil && *known.Spec.RequiresRepublish {
		result.RefreshAt = p.deps.Clock.Now().Add(p.cfg.RepublishPeriod)
	}
	return result, nil
}

// checkLifecycleMode rejects a volume whose lifecycle mode the driver does not support.
func checkLifecycleMode(known *storagev1.CSIDriver, from source) error {
	if known == nil {
		if from.ephemeral {
			return fmt.Errorf("volume mode %q not supported by driver %s (no CSIDriver object)", from.lifecycleMode(), from.driver)
		}
		return nil
	}
	for _, mode := range known.Spec.VolumeLifecycleModes {
		if mode == from.lifecycleMode() {
			return nil
		}
	}
	return fmt.Errorf("volume mode %q not supported by driver %s (only supports %q)", from.lifecycleMode(), from.driver, known.Spec.VolumeLifecycleModes)
}

// publishRequest builds the NodePublishVolume request.
func (p *Plugin) publishRequest(ctx context.Context, caps capabilities, known *storagev1.CSIDriver, r plugin.Request, from source) (*csi.NodePublishVolumeRequest, error) {
	request := &csi.NodePublishVolumeRequest{
		VolumeId:         from.handle,
		TargetPath:       filepath.Join(r.VolumeDir(Name), mountDir),
		Readonly:         from.readOnly,
		VolumeCapability: caps.mountable(accessMode(r.Spec), from.fsType, mountFlags(r), r.FSGroup()),
	}
	var err error
	if !from.ephemeral {
		if request.PublishContext, err = p.publishContext(ctx, r.Spec); err != nil {
			return nil, errorf("mounter.SetUpAt failed to fetch publishContext: %w", err)
		}
		if caps[canStage] {
			if request.StagingTargetPath, _, err = p.stagingPath(idOf(r.Spec)); err != nil {
				return nil, err
			}
			if err := p.checkLabel(r, request.StagingTargetPath); err != nil {
				return nil, err
			}
		}
	}
	if err := p.addPublishContext(ctx, known, r, from, request); err != nil {
		return nil, err
	}
	return request, nil
}

// publishSecret is the nodePublishSecretRef of the volume.
func publishSecret(r plugin.Request) *v1.SecretReference {
	if r.PV != nil {
		return r.PV.Spec.CSI.NodePublishSecretRef
	}
	if ref := r.Volume.CSI.NodePublishSecretRef; ref != nil {
		return &v1.SecretReference{Name: ref.Name, Namespace: r.Pod.Namespace}
	}
	return nil
}

// publish calls NodePublishVolume. It stores the volume data first, so that TearDown can undo the call
// whatever happens. After a final failure it removes the directories, unless the volume was
// published before.
func (p *Plugin) publish(ctx context.Context, c *client, r plugin.Request, from source, request *csi.NodePublishVolumeRequest) error {
	dir := filepath.Dir(request.TargetPath)
	before, err := p.deps.Mounts.Mounted(request.TargetPath)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return errorf("mounter.SetUpAt failed to create dir %q: %w", dir, err)
	}
	n := volumeData{
		Volume: r.Name(), Handle: from.handle, Driver: from.driver, NodeName: p.cfg.NodeName, LifecycleMode: from.lifecycleMode(),
		AttachmentID: attachmentName(from.handle, from.driver, p.cfg.NodeName), SELinux: r.Label,
	}
	if err := n.write(dir); err != nil {
		return errorf("mounter.SetUpAt failed to save volume info data: %w", err)
	}
	if _, err := c.node.NodePublishVolume(ctx, request); err != nil {
		if isFinal(err) && !before {
			err = errors.Join(err, p.removeVolumeDir(request.TargetPath))
		}
		return err
	}
	return nil
}

// appliesFSGroup reports whether the kubelet changes the volume's files to the fsGroup.
func appliesFSGroup(known *storagev1.CSIDriver, r plugin.Request, from source) bool {
	policy := storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy
	if known != nil && known.Spec.FSGroupPolicy != nil && *known.Spec.FSGroupPolicy != "" {
		policy = *known.Spec.FSGroupPolicy
	}
	switch {
	case from.readOnly || policy == storagev1.NoneFSGroupPolicy:
		return false
	case policy == storagev1.FileFSGroupPolicy:
		return true
	case from.fsType == "":
		return false
	case from.ephemeral:
		return true
	}
	for _, mode := range r.PV.Spec.AccessModes {
		if mode == v1.ReadWriteOnce || mode == v1.ReadWriteOncePod {
			return true
		}
	}
	return false
}

// TearDown unpublishes the volume, from what is on disk.
func (p *Plugin) TearDown(ctx context.Context, v plugin.Published) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if v.Block {
		return p.tearDownRaw(ctx, v)
	}
	dir := v.Dir(Name)
	path := filepath.Join(dir, mountDir)
	n, ok, unreadable := p.readVolumeData(dir)
	if unreadable != nil {
		n, ok = p.volumeDataByMount(v, unreadable)
	}
	switch {
	case ok:
		if err := p.unpublish(ctx, n, path); err != nil {
			return errorf("Unmounter.TearDownAt failed: %w", err)
		}
	case unreadable != nil:
		if err := p.unmountWithoutDriver(path); err != nil {
			return err
		}
	}
	// The driver should remove the target; not all do.
	if err := p.removeVolumeDir(path); err != nil {
		return errorf("Unmounter.TearDownAt failed to clean mount dir [%s]: %w", path, err)
	}
	return nil
}

func (p *Plugin) unpublish(ctx context.Context, n volumeData, path string) error {
	c, err := p.connect(n.Driver)
	if err != nil {
		return err
	}
	defer c.close()
	_, err = c.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: n.Handle, TargetPath: path})
	return err
}
