package kubeapi

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// EnvSources is where environment variables of containers come from.
type EnvSources struct {
	ObjectGetter
	// Caches is nil without an API server, where there are no services.
	Caches *Caches
}

// ObjectGetter reads the ConfigMaps and Secrets that pods use.
type ObjectGetter interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
}

// Services lists a namespace's services; false while they are not known yet.
func (s EnvSources) Services(namespace string) ([]*v1.Service, bool) {
	if s.Caches == nil {
		return nil, true
	}
	return s.Caches.Services.List(namespace), s.Caches.Services.HasSynced()
}
