package plugin

import v1 "k8s.io/api/core/v1"

// Spec is a volume as its author described it: in the pod itself, or in the
// PersistentVolume that the pod reaches through a claim.
type Spec struct {
	// Volume is the pod's own entry. It is always there; for a claim it says no more than
	// the claim's name.
	Volume *v1.Volume
	// PV is the volume behind the claim and PVC the claim, both nil for a volume that is
	// described in the pod. They are bound to each other. A disk that the pod describes in
	// the words of a kind that CSI drivers took over has a PV made for it, and no PVC.
	PV  *v1.PersistentVolume
	PVC *v1.PersistentVolumeClaim
	// ClaimReadOnly is the readOnly of the pod's reference to the claim.
	ClaimReadOnly bool
}

// Name is the name that the volume's folder and messages about it have: the
// PersistentVolume's, or the one the pod gave it.
func (s Spec) Name() string {
	if s.PV != nil {
		return s.PV.Name
	}
	return s.Volume.Name
}

// Block reports whether containers get the raw device instead of a file system.
func (s Spec) Block() bool {
	return s.PV != nil && s.PV.Spec.VolumeMode != nil && *s.PV.Spec.VolumeMode == v1.PersistentVolumeBlock
}

// MountOptions are what the PersistentVolume asks for beside its source.
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
