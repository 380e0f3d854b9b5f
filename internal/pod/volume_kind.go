package pod

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// volumeKind is a row of volumeKinds: what is particular to one kind of volume, apart from how
// it is mounted. The zero value of a field means that the kind has nothing particular there.
type volumeKind struct {
	// field is the kind's name in a pod's YAML.
	field string
	// is reports whether the volume is of this kind. The other functions are called for such
	// volumes only.
	is func(v *v1.Volume) bool

	// setDefaults sets the API server's defaults.
	setDefaults func(v *v1.Volume)
	// validate checks the source, which is at path.
	validate func(v *v1.Volume, path *field.Path) field.ErrorList

	// configMaps names the ConfigMaps that the volume needs, secrets the Secrets. secretRef is
	// the Secret of a kind that refers to at most one.
	configMaps, secrets func(v *v1.Volume) []string
	secretRef           func(v *v1.Volume) *v1.LocalObjectReference
	// apiReference is the kind of API object that the volume depends on, for which static pods are
	// rejected; "" for none. A kind without it depends on Secrets if it has a secretRef.
	apiReference func(v *v1.Volume) string
	// claim is the name of the PersistentVolumeClaim behind the volume.
	claim func(p *v1.Pod, v *v1.Volume) string

	// fileUsers are the fields that name the owners of the volume's files.
	fileUsers func(v *v1.Volume) []**int64
	// showsPod reports whether files of the volume show the pod's own fields.
	showsPod func(v *v1.Volume) bool
	// onNodeDisk reports whether the volume counts as ephemeral storage of the node.
	onNodeDisk func(v *v1.Volume) bool
	// stateless volumes contain nothing that outlives the pod and need only the node's storage.
	stateless bool
	// migratedPlugin is the in-tree plugin that a CSI driver has replaced.
	migratedPlugin string
}

// kindsOf returns the rows that describe the volume: one, unless the volume is invalid.
func kindsOf(v *v1.Volume) (kinds []*volumeKind) {
	for i := range volumeKinds {
		if volumeKinds[i].is(v) {
			kinds = append(kinds, &volumeKinds[i])
		}
	}
	return kinds
}

// VolumeConfigMaps names the ConfigMaps that the volume needs.
func VolumeConfigMaps(v *v1.Volume) (names []string) {
	for _, k := range kindsOf(v) {
		if k.configMaps != nil {
			names = append(names, k.configMaps(v)...)
		}
	}
	return names
}

// VolumeSecrets names the Secrets that the volume needs.
func VolumeSecrets(v *v1.Volume) (names []string) {
	for _, k := range kindsOf(v) {
		if k.secrets != nil {
			names = append(names, k.secrets(v)...)
		}
		if k.secretRef == nil {
			continue
		}
		if ref := k.secretRef(v); ref != nil && ref.Name != "" {
			names = append(names, ref.Name)
		}
	}
	return names
}

// VolumeClaim names the PersistentVolumeClaim behind a volume of p; ok is false for a volume
// that needs none.
func VolumeClaim(p *v1.Pod, v *v1.Volume) (name string, ok bool) {
	for _, k := range kindsOf(v) {
		if k.claim != nil {
			return k.claim(p, v), true
		}
	}
	return "", false
}

// VolumeShowsPod reports whether the volume has files made from fields of the pod itself.
func VolumeShowsPod(v *v1.Volume) bool {
	return slices.ContainsFunc(kindsOf(v), func(k *volumeKind) bool { return k.showsPod != nil && k.showsPod(v) })
}

// VolumeOnNodeDisk reports whether the volume's content takes up ephemeral storage of the node.
// Volumes in memory and volumes with a file system of their own do not.
func VolumeOnNodeDisk(v *v1.Volume) bool {
	return slices.ContainsFunc(kindsOf(v), func(k *volumeKind) bool { return k.onNodeDisk != nil && k.onNodeDisk(v) })
}

// VolumeIsStateless reports whether the volume holds nothing that outlives the pod and needs no
// other storage than the node's own.
func VolumeIsStateless(v *v1.Volume) bool {
	return slices.ContainsFunc(kindsOf(v), func(k *volumeKind) bool { return k.stateless })
}

// MigratedVolumePlugins lists the in-tree volume plugins that CSI drivers have replaced, sorted.
func MigratedVolumePlugins() (names []string) {
	for _, k := range volumeKinds {
		if k.migratedPlugin != "" {
			names = append(names, k.migratedPlugin)
		}
	}
	slices.Sort(names)
	return names
}
