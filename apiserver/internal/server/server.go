// Package server assembles a Kubernetes API server for one node from the parts of kube-apiserver: its
// options, storage, admission, authentication, authorization and its API groups, without the aggregation
// layer.
package server

import (
	"context"
	"fmt"
	"net/http"

	clientv3 "go.etcd.io/etcd/client/v3"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/notfoundhandler"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubelet "k8s.io/kubernetes/pkg/kubelet/client"
	"k8s.io/utils/clock"

	"swiftlet/apiserver/internal/demand"
	"swiftlet/apiserver/internal/nodebinding"
	"swiftlet/apiserver/internal/nodeproxy"
	"swiftlet/apiserver/internal/resourcemetrics"
)

// Store is the etcd member.
type Store interface {
	Client() *clientv3.Client
	Dialer
}

// Run serves until ctx is done.
func Run(ctx context.Context, c Config, store Store) error {
	limitGarbage()
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // its own requests are not the user's
	resourcemetrics.RegisterTypes()
	needed := demand.New()
	binding := nodebinding.New(c.NodeName, clock.RealClock{})
	opts, err := c.options(ctx, store, needed, binding)
	if err != nil {
		return fmt.Errorf("set up API server: %w", err)
	}
	config, err := app.NewConfig(opts)
	if err != nil {
		return fmt.Errorf("set up API server: %w", err)
	}
	client := store.Client()
	for _, options := range []*generic.RESTOptionsGetter{
		&config.KubeAPIs.ControlPlane.Generic.RESTOptionsGetter,
		&config.ApiExtensions.GenericConfig.RESTOptionsGetter,
		&config.ApiExtensions.ExtraConfig.CRDRESTOptionsGetter,
	} {
		*options = newDirectStorage(*options, client)
	}
	kube := config.KubeAPIs.ControlPlane.Generic
	kube.SkipOpenAPIInstallation = true
	transport, err := kubelet.MakeTransport(&opts.KubeletConfig)
	if err != nil {
		return fmt.Errorf("set up connections to the kubelet: %w", err)
	}
	proxyNode(kube, nodeproxy.Config{
		Node: c.NodeName, Nodes: config.KubeAPIs.ControlPlane.VersionedInformers.Core().V1().Nodes().Lister(), Transport: transport, Errors: kube.Serializer,
	})
	complete, err := config.Complete()
	if err != nil {
		return fmt.Errorf("set up API server: %w", err)
	}
	notFound := notfoundhandler.New(kube.Serializer, genericapifilters.NoMuxAndDiscoveryIncompleteKey)
	extensions, err := complete.ApiExtensions.New(genericapiserver.NewEmptyDelegateWithCustomHandler(notFound))
	if err != nil {
		return fmt.Errorf("set up custom resources: %w", err)
	}
	instance, err := complete.KubeAPIs.New(extensions.GenericAPIServer)
	if err != nil {
		return fmt.Errorf("set up API groups: %w", err)
	}
	server := instance.ControlPlane.GenericAPIServer
	usage := resourcemetrics.NewUsage(resourcemetrics.Kubelet{Transport: transport}, clock.RealClock{})
	if err := resourcemetrics.Install(server, instance.ControlPlane.VersionedInformers, c.NodeName, usage); err != nil {
		return err
	}
	if err := server.AddPostStartHook("swiftlet-controllers", func(hook genericapiserver.PostStartHookContext) error {
		return c.startControllers(hook, instance.ControlPlane.VersionedInformers, needed, binding)
	}); err != nil {
		return err
	}
	prepared := server.PrepareRun()
	dropDefinitions(kube.OpenAPIConfig, kube.OpenAPIV3Config)
	installOpenAPI(server, extensions.GenericAPIServer.Handler.NonGoRestfulMux, kube.OpenAPIConfig, kube.OpenAPIV3Config)
	return prepared.RunWithContext(ctx)
}

// proxyNode has requests for the kubelet proxied once they are authorized.
func proxyNode(server *genericapiserver.Config, proxy nodeproxy.Config) {
	build := server.BuildHandlerChainFunc
	server.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return build(nodeproxy.Wrap(proxy, api), c)
	}
}
