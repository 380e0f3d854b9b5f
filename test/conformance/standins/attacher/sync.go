package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// finalizer is the finalizer on attachments until the volume is detached.
func (a *attacher) finalizer() string { return "external-attacher/" + a.name }

// sync reconciles an attachment by one step.
func (a *attacher) sync(ctx context.Context, v *storage.VolumeAttachment) error {
	ours := slices.Contains(v.Finalizers, a.finalizer())
	switch {
	case v.DeletionTimestamp != nil && ours:
		return a.detach(ctx, v)
	case v.DeletionTimestamp != nil || v.Status.Attached:
		return nil
	case !a.attach:
		return a.setStatus(ctx, v, storage.VolumeAttachmentStatus{Attached: true})
	case !ours:
		return a.setFinalizers(ctx, v, append(slices.Clone(v.Finalizers), a.finalizer())) // the update triggers the next sync
	}
	published, err := a.publish(ctx, v)
	if err != nil {
		return errors.Join(err, a.setStatus(ctx, v, storage.VolumeAttachmentStatus{AttachError: failure(err)}))
	}
	return a.setStatus(ctx, v, storage.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: published})
}

func (a *attacher) publish(ctx context.Context, v *storage.VolumeAttachment) (map[string]string, error) {
	volume, node, err := a.find(ctx, v)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	answer, err := a.driver.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{
		VolumeId:         volume.Spec.CSI.VolumeHandle,
		NodeId:           node,
		VolumeCapability: capability(volume),
		Readonly:         volume.Spec.CSI.ReadOnly,
		VolumeContext:    volume.Spec.CSI.VolumeAttributes,
	})
	return answer.GetPublishContext(), err
}

// detach calls the driver to detach the volume and then removes the finalizer.
func (a *attacher) detach(ctx context.Context, v *storage.VolumeAttachment) error {
	volume, node, err := a.find(ctx, v)
	if err == nil {
		call, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		_, err = a.driver.ControllerUnpublishVolume(call, &csi.ControllerUnpublishVolumeRequest{
			VolumeId: volume.Spec.CSI.VolumeHandle, NodeId: node,
		})
	}
	if err != nil && !apierrors.IsNotFound(err) { // a deleted volume need not be detached
		next := v.Status
		next.DetachError = failure(err)
		return errors.Join(err, a.setStatus(ctx, v, next))
	}
	return a.setFinalizers(ctx, v, slices.DeleteFunc(slices.Clone(v.Finalizers), func(f string) bool { return f == a.finalizer() }))
}

// find returns the attachment's volume, and the driver's ID of its node.
func (a *attacher) find(ctx context.Context, v *storage.VolumeAttachment) (*core.PersistentVolume, string, error) {
	if v.Spec.Source.PersistentVolumeName == nil {
		return nil, "", errors.New("find volume: the attachment has no PersistentVolume")
	}
	volume, err := a.client.CoreV1().PersistentVolumes().Get(ctx, *v.Spec.Source.PersistentVolumeName, meta.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	if volume.Spec.CSI == nil {
		return nil, "", fmt.Errorf("volume %s is not a CSI volume", volume.Name)
	}
	node, err := a.client.StorageV1().CSINodes().Get(ctx, v.Spec.NodeName, meta.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	for _, d := range node.Spec.Drivers {
		if d.Name == a.name {
			return volume, d.NodeID, nil
		}
	}
	return nil, "", fmt.Errorf("find node: the driver is not registered on node %s", v.Spec.NodeName)
}

// capability returns the volume's capability. Of several access modes it takes the first.
func capability(volume *core.PersistentVolume) *csi.VolumeCapability {
	modes := map[core.PersistentVolumeAccessMode]csi.VolumeCapability_AccessMode_Mode{
		core.ReadWriteOnce:    csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		core.ReadWriteOncePod: csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		core.ReadOnlyMany:     csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
		core.ReadWriteMany:    csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
	}
	c := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{}}
	if len(volume.Spec.AccessModes) > 0 {
		c.AccessMode.Mode = modes[volume.Spec.AccessModes[0]]
	}
	if mode := volume.Spec.VolumeMode; mode != nil && *mode == core.PersistentVolumeBlock {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	} else {
		c.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{
			FsType: volume.Spec.CSI.FSType, MountFlags: volume.Spec.MountOptions}}
	}
	return c
}

// failure has the driver's gRPC code: the kubelet checks for ResourceExhausted.
func failure(err error) *storage.VolumeError {
	e := &storage.VolumeError{Time: meta.Now(), Message: err.Error()}
	if s, ok := status.FromError(err); ok && s.Code() != codes.OK {
		code := int32(s.Code())
		e.ErrorCode = &code
	}
	return e
}

// setStatus patches the status.
func (a *attacher) setStatus(ctx context.Context, v *storage.VolumeAttachment, next storage.VolumeAttachmentStatus) error {
	// null removes errors of an earlier try.
	return a.patch(ctx, v, map[string]any{"status": map[string]any{
		"attached": next.Attached, "attachmentMetadata": next.AttachmentMetadata,
		"attachError": next.AttachError, "detachError": next.DetachError,
	}}, "status")
}

// setFinalizers patches the finalizers, and fails if the attachment has changed.
func (a *attacher) setFinalizers(ctx context.Context, v *storage.VolumeAttachment, finalizers []string) error {
	return a.patch(ctx, v, map[string]any{"metadata": map[string]any{
		"finalizers": finalizers, "resourceVersion": v.ResourceVersion,
	}})
}

func (a *attacher) patch(ctx context.Context, v *storage.VolumeAttachment, change any, sub ...string) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = a.client.StorageV1().VolumeAttachments().Patch(ctx, v.Name, types.MergePatchType, data, meta.PatchOptions{}, sub...)
	return err
}
