package kubeapi

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// EnvSources is where environment variables of containers come from.
type EnvSources struct {
	ObjectGetter
	// List is nil without an API server, where there are no services.
	List *Services
}

// ObjectGetter reads the ConfigMaps and Secrets that pods use.
type ObjectGetter interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
}

// Services lists a namespace's services; false while they are not known yet.
func (s EnvSources) Services(namespace string) ([]*v1.Service, bool) {
	if s.List == nil {
		return nil, true
	}
	return s.List.List(namespace), s.List.HasSynced()
}
