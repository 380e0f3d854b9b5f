// Package server assembles a Kubernetes API server for one node from the parts of kube-apiserver: its
// options, storage, admission, authentication, authorization and its API groups, without the aggregation
// layer.
package server

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/notfoundhandler"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubelet "k8s.io/kubernetes/pkg/kubelet/client"
	"k8s.io/utils/clock"

	"swiftlet/apiserver/internal/controllers"
	"swiftlet/apiserver/internal/demand"
	"swiftlet/apiserver/internal/manifests"
	"swiftlet/apiserver/internal/nodebinding"
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
	transport, err := kubelet.MakeTransport(&opts.KubeletConfig)
	if err != nil {
		return fmt.Errorf("set up connections to the kubelet: %w", err)
	}
	usage := resourcemetrics.NewUsage(resourcemetrics.Kubelet{Transport: transport}, clock.RealClock{})
	if err := resourcemetrics.Install(server, instance.ControlPlane.VersionedInformers, c.NodeName, usage); err != nil {
		return err
	}
	// The namespace controller makes requests when it is created.
	if err := server.AddPostStartHook("swiftlet-controllers", func(hook genericapiserver.PostStartHookContext) error {
		set, err := controllers.New(hook, hook.LoopbackClientConfig, instance.ControlPlane.VersionedInformers,
			controllers.CA{Certificate: c.pki("ca.crt"), Key: c.pki("ca.key")})
		if err != nil {
			return err
		}
		workloads, err := controllers.NewWorkloads(controllers.WorkloadConfig{Node: c.NodeName, Volumes: c.Volumes, Proxy: c.proxy()},
			hook.LoopbackClientConfig, instance.ControlPlane.VersionedInformers, needed)
		if err != nil {
			return err
		}
		if err := createDefaults(hook, hook.LoopbackClientConfig); err != nil {
			return err
		}
		go set.Run(hook)
		go workloads.Run(hook)
		go workloads.BindPods(hook, binding)
		go whenReady(hook, hook.LoopbackClientConfig, func() {
			if err := allowDNS(hook, hook.LoopbackClientConfig); err != nil {
				klog.FromContext(hook).Error(err, "DNS does not know Services")
			}
			workloads.AddStored(hook)
			releaseMemory() // that only the start needed
		})
		return c.applyManifests(hook)
	}); err != nil {
		return err
	}
	prepared := server.PrepareRun()
	dropDefinitions(kube.OpenAPIConfig, kube.OpenAPIV3Config)
	installOpenAPI(server, extensions.GenericAPIServer.Handler.NonGoRestfulMux, kube.OpenAPIConfig, kube.OpenAPIV3Config)
	return prepared.RunWithContext(ctx)
}

// applyManifests starts to apply the directory of manifests.
func (c Config) applyManifests(hook genericapiserver.PostStartHookContext) error {
	if c.Manifests == "" {
		return nil
	}
	log := slog.New(logr.ToSlogHandler(klog.FromContext(hook)))
	directory, err := manifests.New(manifests.Config{Dir: c.Manifests}, manifests.Deps{
		Client: hook.LoopbackClientConfig, Clock: clock.RealClock{}, Log: log, Report: c.Report,
	})
	if err != nil {
		return err
	}
	go func() {
		if err := directory.Run(hook); err != nil {
			log.Error("manifests: not applied", "err", err)
			c.Report([]manifests.Problem{{File: c.Manifests, Message: err.Error()}})
		}
	}()
	return nil
}
