package resourcemetrics

import (
	"fmt"

	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/metrics/pkg/apis/metrics"
	"k8s.io/metrics/pkg/apis/metrics/install"
	metricsv1 "k8s.io/metrics/pkg/apis/metrics/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// RegisterTypes makes the types known to the API server, before it is set up.
func RegisterTypes() { install.Install(legacyscheme.Scheme) }

// Install serves the group for the node of that name.
func Install(server *genericapiserver.GenericAPIServer, shared informers.SharedInformerFactory, node string, usage *Usage) error {
	core := shared.Core().V1()
	local := localNode{name: node, nodes: core.Nodes().Lister(), usage: usage}
	storages := map[string]rest.Storage{
		"nodes": &nodes{local: local},
		"pods":  &pods{local: local, pods: core.Pods().Lister()},
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(metrics.GroupName, legacyscheme.Scheme, legacyscheme.ParameterCodec, legacyscheme.Codecs)
	for _, version := range []string{metricsv1.SchemeGroupVersion.Version, v1beta1.SchemeGroupVersion.Version} {
		group.VersionedResourcesStorageMap[version] = storages
	}
	if err := server.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("serve %s: %w", metrics.GroupName, err)
	}
	return nil
}
