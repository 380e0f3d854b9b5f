package server

import (
	"log/slog"

	"github.com/go-logr/logr"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"swiftlet/apiserver/internal/controllers"
	"swiftlet/apiserver/internal/demand"
	"swiftlet/apiserver/internal/manifests"
	"swiftlet/apiserver/internal/nodebinding"
)

// startControllers starts what uses the API, once it is served: the namespace controller makes requests when it
// is created.
func (c Config) startControllers(hook genericapiserver.PostStartHookContext, shared informers.SharedInformerFactory,
	needed *demand.Demand, binding *nodebinding.Binding,
) error {
	set, err := controllers.New(hook, hook.LoopbackClientConfig, shared, controllers.CA{Certificate: c.pki("ca.crt"), Key: c.pki("ca.key")})
	if err != nil {
		return err
	}
	workloads, err := controllers.NewWorkloads(controllers.WorkloadConfig{Node: c.NodeName, Volumes: c.Volumes, Proxy: c.proxy()},
		hook.LoopbackClientConfig, shared, needed)
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
