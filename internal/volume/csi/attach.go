package csi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/why"
)

// attachRetry is the longest delay before a VolumeAttachment is read again: nodes may not watch it.
const attachRetry = 5 * time.Second

// AttachName is "" if the driver does not require attach.
func (p *Plugin) AttachName(ctx context.Context, s plugin.Spec) (v1.UniqueVolumeName, error) {
	if s.PV == nil {
		return "", nil
	}
	if p.deps.Client == nil {
		return "", errNoAPI
	}
	from := persistentSource(s)
	attached, err := p.needsAttach(ctx, from.driver)
	if err != nil || !attached {
		return "", err
	}
	return v1.UniqueVolumeName(Name + "/" + from.driver + "^" + from.handle), nil
}

// needsAttach is also true for a driver without a CSIDriver object.
func (p *Plugin) needsAttach(ctx context.Context, driver string) (bool, error) {
	known, err := p.driverObject(ctx, driver)
	if err != nil {
		return false, err
	}
	return known == nil || known.Spec.AttachRequired == nil || *known.Spec.AttachRequired, nil
}

// driverObject returns the CSIDriver object, nil if there is none.
func (p *Plugin) driverObject(ctx context.Context, driver string) (*storagev1.CSIDriver, error) {
	known, err := p.deps.Drivers(ctx, driver)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return known, err
}

// Attached returns nil once the driver's controller has attached the volume.
func (p *Plugin) Attached(ctx context.Context, r plugin.Request) error {
	_, err := p.attachment(ctx, r.Spec)
	return err
}

func (p *Plugin) attachment(ctx context.Context, s plugin.Spec) (*storagev1.VolumeAttachment, error) {
	from := persistentSource(s)
	name := attachmentName(from.handle, from.driver, p.cfg.NodeName)
	got, err := p.deps.Client.VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, plugin.RetryWithin(fmt.Errorf("volume %s has GET error for volume attachment %s: %w", from.handle, name, err), attachRetry)
	}
	switch {
	case got.DeletionTimestamp != nil:
		err = errors.New("volume attachment is being deleted")
	case got.Status.Attached:
		return got, nil
	case got.Status.AttachError != nil:
		err = errors.New(got.Status.AttachError.Message)
	default:
		err = fmt.Errorf("volume %s is not attached for volume attachment %s", from.handle, name)
	}
	return nil, plugin.RetryWithin(why.Because(why.VolumeNotAttached, "VolumeAttachment "+name, err), attachRetry)
}

// AttachLimitReached reports whether the attach failed with ResourceExhausted. It is false for a
// driver without periodic updates: for the others it updates the limit in the CSINode first, so
// that the scheduler does not choose this node again for the pod's replacement.
func (p *Plugin) AttachLimitReached(ctx context.Context, s plugin.Spec) bool {
	if s.PV == nil || p.deps.Client == nil {
		return false
	}
	from := persistentSource(s)
	if p.updatePeriod(ctx, from.driver) == 0 {
		return false
	}
	name := attachmentName(from.handle, from.driver, p.cfg.NodeName)
	got, err := p.deps.Client.VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		p.deps.Log.Warn("csi: failed to get volume attachment", "driver", from.driver, "volume", from.handle, "err", err)
		return false
	}
	failed := got.Status.AttachError
	if failed == nil || failed.ErrorCode == nil || codes.Code(*failed.ErrorCode) != codes.ResourceExhausted {
		return false
	}
	p.updateAllocatable(ctx, from.driver)
	return true
}

// publishContext is the context that the driver's controller passes to the driver on this node.
func (p *Plugin) publishContext(ctx context.Context, s plugin.Spec) (map[string]string, error) {
	needed, err := p.needsAttach(ctx, persistentSource(s).driver)
	if err != nil || !needed {
		return nil, err
	}
	got, err := p.attachment(ctx, s)
	if err != nil {
		return nil, err
	}
	return got.Status.AttachmentMetadata, nil
}

// secret reads a Secret that the driver needs.
func (p *Plugin) secret(ctx context.Context, ref *v1.SecretReference) (map[string]string, error) {
	contents := map[string]string{}
	if ref == nil {
		return contents, nil
	}
	got, err := p.deps.Client.Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, errorf("failed to find the secret %s in the namespace %s with error: %w", ref.Name, ref.Namespace, err)
	}
	for key, value := range got.Data {
		contents[key] = string(value)
	}
	return contents, nil
}
