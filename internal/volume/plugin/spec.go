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

// HostPath is the source of a hostPath volume, nil for all others.
func (s Spec) HostPath() *v1.HostPathVolumeSource {
	if s.PV != nil {
		return s.PV.Spec.HostPath
	}
	return s.Volume.HostPath
}

// NFS is the source of an NFS volume, nil for all others.
func (s Spec) NFS() *v1.NFSVolumeSource {
	if s.PV != nil {
		return s.PV.Spec.NFS
	}
	return s.Volume.NFS
}

// FC is the source of a Fibre Channel volume, nil for all others.
func (s Spec) FC() *v1.FCVolumeSource {
	if s.PV != nil {
		return s.PV.Spec.FC
	}
	return s.Volume.FC
}

// FlexDriver is the driver of a FlexVolume, "" for all others.
func (s Spec) FlexDriver() string {
	switch {
	case s.PV != nil && s.PV.Spec.FlexVolume != nil:
		return s.PV.Spec.FlexVolume.Driver
	case s.PV == nil && s.Volume.FlexVolume != nil:
		return s.Volume.FlexVolume.Driver
	}
	return ""
}
