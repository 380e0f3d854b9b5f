package plugin

import v1 "k8s.io/api/core/v1"

// Spec is the specification of a volume: in the pod itself, or in the PersistentVolume behind its
// claim.
type Spec struct {
	// Volume is the volume in the pod's spec. It is never nil; for a claim it has the claim's
	// name only.
	Volume *v1.Volume
	// PVC is the claim and PV the volume bound to it, both nil for an inline volume. An inline
	// volume of a migrated in-tree kind has the PV that it was translated to, and no PVC.
	PV  *v1.PersistentVolume
	PVC *v1.PersistentVolumeClaim
	// ClaimReadOnly is readOnly of the pod's reference to the claim.
	ClaimReadOnly bool
}

// Name is the name of the volume's directory, and in messages: that of the PersistentVolume, or of
// the volume in the pod's spec.
func (s Spec) Name() string {
	if s.PV != nil {
		return s.PV.Name
	}
	return s.Volume.Name
}

// Block reports whether the volume is a raw block volume.
func (s Spec) Block() bool {
	return s.PV != nil && s.PV.Spec.VolumeMode != nil && *s.PV.Spec.VolumeMode == v1.PersistentVolumeBlock
}

// MountOptions are those of the PersistentVolume.
func (s Spec) MountOptions() []string {
	if s.PV == nil {
		return nil
	}
	return s.PV.Spec.MountOptions
}

// Source is the source of a volume whose kind is both in pods and in PersistentVolumes; nil for
// a volume of another kind.
func Source[S any](s Spec, inline func(*v1.Volume) *S, persistent func(*v1.PersistentVolume) *S) *S {
	if s.PV != nil {
		return persistent(s.PV)
	}
	return inline(s.Volume)
}
