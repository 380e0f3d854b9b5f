package pod

import (
	v1 "k8s.io/api/core/v1"
)

const oneHour = 60 * 60

func defaultVolume(v *v1.Volume) {
	if v.VolumeSource == (v1.VolumeSource{}) {
		v.EmptyDir = &v1.EmptyDirVolumeSource{}
	}
	for _, k := range kindsOf(v) {
		if k.setDefaults != nil {
			k.setDefaults(v)
		}
	}
}

func defaultClaimTemplate(v *v1.Volume) {
	if v.Ephemeral.VolumeClaimTemplate == nil {
		return
	}
	claim := &v.Ephemeral.VolumeClaimTemplate.Spec
	setDefaultPtr(&claim.VolumeMode, v1.PersistentVolumeFilesystem)
	roundUp(claim.Resources.Limits)
	roundUp(claim.Resources.Requests)
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
