// Package secret mounts volumes with the keys of a Secret as files in a tmpfs.
package secret

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
const Name = "kubernetes.io/secret"

// Getter reads Secrets; a missing one is an apimachinery NotFound error.
type Getter interface {
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
}

// New returns the plugin.
func New(get Getter, deps content.Deps) *content.Plugin {
	return content.New(content.Kind{
		Name:    Name,
		Medium:  v1.StorageMediumMemory,
		Handles: func(v *v1.Volume) bool { return v.Secret != nil },
		Collect: func(ctx context.Context, r plugin.Request) (content.Files, error) {
			src := r.Volume.Secret
			payload, err := Collect(ctx, get, r.Pod.Namespace, Source{src.SecretName, src.Items, src.DefaultMode, src.DefaultUser, src.Optional})
			return content.Files{Payload: payload}, err
		},
	}, deps)
}

// Source selects keys of a Secret.
type Source struct {
	Name        string
	Items       []v1.KeyToPath
	DefaultMode *int32
	DefaultUser *int64
	Optional    *bool
}

// Collect reads the Secret and returns its files.
func Collect(ctx context.Context, get Getter, namespace string, s Source) (atomicdir.Payload, error) {
	optional := s.Optional != nil && *s.Optional
	secret, err := get.Secret(ctx, namespace, s.Name)
	if apierrors.IsNotFound(err) && optional {
		secret, err = &v1.Secret{}, nil
	}
	if err != nil {
		return nil, err
	}
	return content.Keys{
		Items: s.Items, DefaultMode: s.DefaultMode, DefaultUser: s.DefaultUser, Optional: optional,
		Missing: func(key string) error {
			return why.MissingKey(key, "Secret", namespace, s.Name, fmt.Errorf("references non-existent secret key: %s", key))
		},
	}.Select(secret.Data)
}
