package pod

import (
	v1 "k8s.io/api/core/v1"
)

const oneHour = 60 * 60

func defaultVolume(v *v1.Volume) {
	if v.VolumeSource == (v1.VolumeSource{}) {
		v.EmptyDir = &v1.EmptyDirVolumeSource{}
	}
	if v.Image != nil {
		setDefault(&v.Image.PullPolicy, pullPolicy(v.Image.Reference))
	}
	if v.HostPath != nil {
		setDefaultPtr(&v.HostPath.Type, v1.HostPathUnset)
	}
	if v.Secret != nil {
		setDefaultPtr(&v.Secret.DefaultMode, v1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		setDefaultPtr(&v.ConfigMap.DefaultMode, v1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		setDefaultPtr(&v.DownwardAPI.DefaultMode, v1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownwardItems(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		defaultProjected(v.Projected)
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		claim := &v.Ephemeral.VolumeClaimTemplate.Spec
		setDefaultPtr(&claim.VolumeMode, v1.PersistentVolumeFilesystem)
		roundUp(claim.Resources.Limits)
		roundUp(claim.Resources.Requests)
	}
	defaultNetworkVolume(v)
}

func defaultProjected(p *v1.ProjectedVolumeSource) {
	setDefaultPtr(&p.DefaultMode, v1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		if api := p.Sources[i].DownwardAPI; api != nil {
			defaultDownwardItems(api.Items)
		}
		if token := p.Sources[i].ServiceAccountToken; token != nil {
			setDefaultPtr(&token.ExpirationSeconds, oneHour)
		}
	}
}

func defaultDownwardItems(items []v1.DownwardAPIVolumeFile) {
	for i := range items {
		defaultFieldRef(items[i].FieldRef)
	}
}

// defaultNetworkVolume is for sources that name a storage system in the pod itself.
func defaultNetworkVolume(v *v1.Volume) {
	if v.ISCSI != nil {
		setDefault(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		setDefault(&v.RBD.RBDPool, "rbd")
		setDefault(&v.RBD.RadosUser, "admin")
		setDefault(&v.RBD.Keyring, "/etc/ceph/keyring")
	}
	if v.AzureDisk != nil {
		setDefaultPtr(&v.AzureDisk.CachingMode, v1.AzureDataDiskCachingReadWrite)
		setDefaultPtr(&v.AzureDisk.FSType, "ext4")
		setDefaultPtr(&v.AzureDisk.ReadOnly, false)
		setDefaultPtr(&v.AzureDisk.Kind, v1.AzureSharedBlobDisk)
	}
	if v.ScaleIO != nil {
		setDefault(&v.ScaleIO.StorageMode, "ThinProvisioned")
		setDefault(&v.ScaleIO.FSType, "xfs")
	}
}
