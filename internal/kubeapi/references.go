package kubeapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Kinds of objects that pods refer to and that change notifications name.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
)

// Ref identifies one ConfigMap or Secret.
type Ref struct {
	Kind      string
	Namespace string
	Name      string
}

func (r Ref) String() string { return fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name) }

func (r Ref) compare(other Ref) int {
	return cmp.Or(strings.Compare(r.Kind, other.Kind), strings.Compare(r.Namespace, other.Namespace), strings.Compare(r.Name, other.Name))
}

// References returns every ConfigMap and Secret that p uses in environments, in volumes and as
// image pull secrets, each once and in order: a pod may have thousands.
func References(p *v1.Pod) []Ref {
	var found []Ref
	add := func(kind, name string) {
		if name != "" {
			found = append(found, Ref{kind, p.Namespace, name})
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
	slices.SortFunc(found, Ref.compare)
	return slices.Clip(slices.Compact(found))
}

// contains reports whether sorted references have ref.
func contains(sorted []Ref, ref Ref) bool {
	_, found := slices.BinarySearchFunc(sorted, ref, Ref.compare)
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
	for _, name := range pod.VolumeConfigMaps(v) {
		add(KindConfigMap, name)
	}
	for _, name := range pod.VolumeSecrets(v) {
		add(KindSecret, name)
	}
}
