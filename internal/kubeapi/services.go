package kubeapi

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"swiftlet/internal/kubeclient"
	"swiftlet/internal/require"
)

// Services caches the fields of the cluster's Services that containers' environments need.
type Services struct{ *collection }

// NewServices starts nothing; Run watches.
func NewServices(client kubeclient.Interface) (*Services, error) {
	if err := require.Set("new service lister", map[string]any{"client": client}); err != nil {
		return nil, err
	}
	api := client.Services(metav1.NamespaceAll)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, opts)
		},
		WatchFuncWithContext: api.Watch,
	}
	return &Services{newCollection("services", client, lw, &v1.Service{}, trimService)}, nil
}

// List returns the services of one namespace, in no order, with name, version, type, cluster IPs
// and ports only. Callers must not modify them.
func (s *Services) List(namespace string) []*v1.Service {
	found, err := s.ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil // cannot happen: newCollection adds the index
	}
	services := make([]*v1.Service, 0, len(found))
	for _, obj := range found {
		services = append(services, obj.(*v1.Service))
	}
	return services
}

// trimService reduces a Service to the fields that environment variables use: a large cluster
// has thousands of services, whose annotations would dominate the memory use.
func trimService(obj any) any {
	full, ok := obj.(*v1.Service)
	if !ok {
		return obj
	}
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: full.Name, Namespace: full.Namespace, UID: full.UID, ResourceVersion: full.ResourceVersion,
			CreationTimestamp: full.CreationTimestamp,
		},
		Spec: v1.ServiceSpec{
			Type: full.Spec.Type, ClusterIP: full.Spec.ClusterIP, ClusterIPs: full.Spec.ClusterIPs, Ports: full.Spec.Ports,
		},
	}
}
