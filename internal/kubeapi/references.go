package kubeapi

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Kinds of objects that pods refer to and that change notifications name.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
)

// Ref names one ConfigMap or Secret.
type Ref struct {
	Kind      string
	Namespace string
	Name      string
}

// References lists every ConfigMap and Secret that p uses, each once: by environment,
// by volumes and to pull images.
func References(p *v1.Pod) map[Ref]struct{} {
	found := map[Ref]struct{}{}
	add := func(kind, name string) {
		if name != "" {
			found[Ref{kind, p.Namespace, name}] = struct{}{}
		}
	}
	for _, s := range p.Spec.ImagePullSecrets {
		add(KindSecret, s.Name)
	}
	for c := range pod.Containers(p) {
		environmentReferences(c, add)
	}
	for i := range p.Spec.Volumes {
		VolumeReferences(&p.Spec.Volumes[i], add)
	}
	return found
}

func environmentReferences(c *v1.Container, add func(kind, name string)) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			add(KindConfigMap, from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			add(KindSecret, from.SecretRef.Name)
		}
	}
	for _, env := range c.Env {
		if env.ValueFrom == nil {
			continue
		}
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			add(KindConfigMap, ref.Name)
		}
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			add(KindSecret, ref.Name)
		}
	}
}

// VolumeReferences calls add for every ConfigMap and Secret that one volume uses.
func VolumeReferences(v *v1.Volume, add func(kind, name string)) {
	switch {
	case v.ConfigMap != nil:
		add(KindConfigMap, v.ConfigMap.Name)
	case v.Secret != nil:
		add(KindSecret, v.Secret.SecretName)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				add(KindConfigMap, s.ConfigMap.Name)
			}
			if s.Secret != nil {
				add(KindSecret, s.Secret.Name)
			}
		}
	default:
		if name := driverSecret(v); name != "" {
			add(KindSecret, name)
		}
	}
}

// driverSecret is the Secret that a storage driver needs to mount an inline volume.
func driverSecret(v *v1.Volume) string {
	local := func(ref *v1.LocalObjectReference) string {
		if ref == nil {
			return ""
		}
		return ref.Name
	}
	switch {
	case v.CSI != nil:
		return local(v.CSI.NodePublishSecretRef)
	case v.ISCSI != nil:
		return local(v.ISCSI.SecretRef)
	case v.FlexVolume != nil:
		return local(v.FlexVolume.SecretRef)
	case v.CephFS != nil:
		return local(v.CephFS.SecretRef)
	case v.RBD != nil:
		return local(v.RBD.SecretRef)
	case v.ScaleIO != nil:
		return local(v.ScaleIO.SecretRef)
	case v.StorageOS != nil:
		return local(v.StorageOS.SecretRef)
	case v.AzureFile != nil:
		return v.AzureFile.SecretName
	}
	return ""
}
