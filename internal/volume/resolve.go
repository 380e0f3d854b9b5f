package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/why"
)

// Claims reads claims and PersistentVolumes. A node may get those of its pods, and may not watch them.
type Claims interface {
	Claim(ctx context.Context, namespace, name string) (*v1.PersistentVolumeClaim, error)
	Volume(ctx context.Context, name string) (*v1.PersistentVolume, error)
	// Secret reads a Secret that is needed to mount a volume.
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
}

// claimRetry is the longest delay before a claim that is not ready is read again.
const claimRetry = 5 * time.Second

// claimFinalizer keeps a deleted claim while a pod uses it.
const claimFinalizer = "kubernetes.io/pvc-protection"

// resolve returns the spec of the pod's volume, with its claim and PersistentVolume if it has one.
func (v *Volumes) resolve(ctx context.Context, p *v1.Pod, vol *v1.Volume) (plugin.Spec, error) {
	spec := plugin.Spec{Volume: vol}
	claim, ok := pod.VolumeClaim(p, vol)
	if !ok {
		return migrate(spec, p.Namespace)
	}
	if ref := vol.PersistentVolumeClaim; ref != nil {
		spec.ClaimReadOnly = ref.ReadOnly
	}
	if v.deps.Claims == nil {
		return plugin.Spec{}, fmt.Errorf("error processing PVC %s/%s: there is no API server to ask", p.Namespace, claim)
	}
	if err := v.readClaim(ctx, p, claim, &spec); err != nil {
		return plugin.Spec{}, plugin.RetryWithin(err, claimRetry)
	}
	spec, err := migrate(spec, p.Namespace)
	if err != nil {
		return plugin.Spec{}, err
	}
	return spec, checkMode(p, &spec)
}

// readClaim reads the claim and its PersistentVolume.
func (v *Volumes) readClaim(ctx context.Context, p *v1.Pod, claim string, spec *plugin.Spec) (err error) {
	process := func(err error) error { return fmt.Errorf("error processing PVC %s/%s: %w", p.Namespace, claim, err) }
	if spec.PVC, err = v.deps.Claims.Claim(ctx, p.Namespace, claim); err != nil {
		return process(fmt.Errorf("failed to fetch PVC from API server: %w", err))
	}
	if err := checkClaim(spec.PVC); err != nil {
		class := why.ClaimNotBound
		if spec.PVC.DeletionTimestamp != nil {
			class = why.ClaimDeleted
		}
		return process(why.Because(class, "PersistentVolumeClaim "+p.Namespace+"/"+claim, err))
	}
	if spec.Volume.Ephemeral != nil {
		if err := ephemeral.VolumeIsForPod(p, spec.PVC); err != nil {
			return why.Because(why.ClaimNotOurs, "PersistentVolumeClaim "+p.Namespace+"/"+claim, err)
		}
	}
	name := spec.PVC.Spec.VolumeName
	if spec.PV, err = v.deps.Claims.Volume(ctx, name); err != nil {
		return process(fmt.Errorf("failed to fetch PV %s from API server: %w", name, err))
	}
	notOurs := func(err error) error { return why.Because(why.ClaimNotOurs, "PersistentVolume "+name, process(err)) }
	switch ref := spec.PV.Spec.ClaimRef; {
	case ref == nil:
		return notOurs(fmt.Errorf("found PV object %s but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim", name))
	case ref.UID != spec.PVC.UID:
		return notOurs(fmt.Errorf("found PV object %s but its pv.Spec.ClaimRef.UID %s does not point to claim.UID %s", name, ref.UID, spec.PVC.UID))
	}
	return nil
}

func checkClaim(c *v1.PersistentVolumeClaim) error {
	switch {
	// A claim with the finalizer exists as long as its pods; others may vanish at any moment.
	case c.DeletionTimestamp != nil && !slices.Contains(c.Finalizers, claimFinalizer):
		return errors.New("PVC is being deleted")
	case c.Status.Phase != v1.ClaimBound:
		return errors.New("PVC is not bound")
	case c.Spec.VolumeName == "":
		return errors.New("PVC has empty pvc.Spec.VolumeName")
	}
	return nil
}

// checkMode rejects a raw block volume in volumeMounts, and any other in volumeDevices.
func checkMode(p *v1.Pod, spec *plugin.Spec) error {
	mode, field := v1.PersistentVolumeFilesystem, "volumeDevices"
	if spec.Block() {
		mode, field = v1.PersistentVolumeBlock, "volumeMounts"
	}
	name := spec.Volume.Name
	for c := range pod.Containers(p) {
		wrong := slices.ContainsFunc(c.VolumeDevices, func(d v1.VolumeDevice) bool { return d.Name == name })
		if spec.Block() {
			wrong = slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == name })
		}
		if wrong {
			return why.Because(why.VolumeModeMismatch, "", fmt.Errorf("volume %s has volumeMode %s, but is specified in %s", name, mode, field))
		}
	}
	return nil
}
