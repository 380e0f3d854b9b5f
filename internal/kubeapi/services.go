package kubeapi

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Services knows all services of the cluster, as far as containers' environments need them.
type Services struct{ *collection }

// NewServices starts nothing; Run watches.
func NewServices(client kubernetes.Interface) (*Services, error) {
	if client == nil {
		return nil, errors.New("make service lister: no client")
	}
	api := client.CoreV1().Services(metav1.NamespaceAll)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, opts)
		},
		WatchFuncWithContext: api.Watch,
	}
	return &Services{newCollection("services", client, lw, &v1.Service{}, envService)}, nil
}

// List returns the services of one namespace, in no order. They must not be changed, and
// hold only name, version, type, cluster IPs and ports.
func (s *Services) List(namespace string) []*v1.Service {
	found, err := s.ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil // the index is ours; it exists
	}
	services := make([]*v1.Service, 0, len(found))
	for _, obj := range found {
		services = append(services, obj.(*v1.Service))
	}
	return services
}

// envService keeps what environment variables are made of: a large cluster has
// thousands of services, and their annotations can outweigh all else in memory.
func envService(obj any) any {
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
