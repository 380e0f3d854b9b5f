// Package configmap mounts volumes with the keys of a ConfigMap as files.
package configmap

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"swiftlet/internal/volume/atomicdir"
	"swiftlet/internal/volume/content"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/why"
)

// Name is the kind's qualified name.
const Name = "kubernetes.io/configmap"

// Getter reads ConfigMaps; a missing one is an apimachinery NotFound error.
type Getter interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
}

// New returns the plugin. The files are on disk: they are not secret.
func New(get Getter, deps content.Deps) *content.Plugin {
	return content.New(content.Kind{
		Name:    Name,
		Medium:  v1.StorageMediumDefault,
		Handles: func(v *v1.Volume) bool { return v.ConfigMap != nil },
		Collect: func(ctx context.Context, r plugin.Request) (content.Files, error) {
			src := r.Volume.ConfigMap
			payload, err := Collect(ctx, get, r.Pod.Namespace, Source{src.Name, src.Items, src.DefaultMode, src.DefaultUser, src.Optional})
			return content.Files{Payload: payload}, err
		},
	}, deps)
}

// Source selects keys of a ConfigMap.
type Source struct {
	Name        string
	Items       []v1.KeyToPath
	DefaultMode *int32
	DefaultUser *int64
	Optional    *bool
}

// Collect reads the ConfigMap and returns its files.
func Collect(ctx context.Context, get Getter, namespace string, s Source) (atomicdir.Payload, error) {
	optional := s.Optional != nil && *s.Optional
	cm, err := get.ConfigMap(ctx, namespace, s.Name)
	if apierrors.IsNotFound(err) && optional {
		cm, err = &v1.ConfigMap{}, nil
	}
	if err != nil {
		return nil, err
	}
	data := make(map[string][]byte, len(cm.Data)+len(cm.BinaryData))
	for key, value := range cm.BinaryData {
		data[key] = value
	}
	for key, value := range cm.Data {
		data[key] = []byte(value)
	}
	return content.Keys{
		Items: s.Items, DefaultMode: s.DefaultMode, DefaultUser: s.DefaultUser, Optional: optional,
		Missing: func(key string) error {
			return why.MissingKey(key, "ConfigMap", namespace, s.Name, fmt.Errorf("configmap references non-existent config key: %s", key))
		},
	}.Select(data)
}
