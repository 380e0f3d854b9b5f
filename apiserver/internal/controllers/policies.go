package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/quota/v1/install"
)

// quotaSync is how often all quotas are counted again, as with kube-controller-manager. Most changes are counted at once.
const quotaSync = 5 * time.Minute

// mapper finds the resources of kinds. It asks the API server when it is used first.
func (w *Workloads) mapper() meta.ResettableRESTMapper {
	return restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(w.client.Discovery()))
}

// scales returns a client of the subresource scale of any kind.
func (w *Workloads) scales(mapper meta.ResettableRESTMapper) (scale.ScalesGetter, error) {
	return scale.NewForConfig(w.config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(w.client.Discovery()))
}

// disruption returns the controller that counts how many pods of a PodDisruptionBudget may be evicted. Without
// it none may.
func (w *Workloads) disruption(ctx context.Context) (runner, error) {
	mapper := w.mapper()
	scales, err := w.scales(mapper)
	if err != nil {
		return nil, fmt.Errorf("create disruption controller: %w", err)
	}
	core, apps := w.shared.Core().V1(), w.shared.Apps().V1()
	return disruption.NewDisruptionController(ctx, core.Pods(), w.shared.Policy().V1().PodDisruptionBudgets(), core.ReplicationControllers(),
		apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), w.client, mapper, scales, w.client.Discovery()).Run, nil
}

// quota returns the controller that counts what quotas limit. Without it, nothing can be created where one is.
func (w *Workloads) quota(ctx context.Context) (runner, error) {
	objects := metadatainformer.NewSharedInformerFactoryWithOptions(w.objects, 0, metadatainformer.WithTransform(keepOwners))
	evaluators, err := install.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(w.shared.ForResource), w.shared)
	if err != nil {
		return nil, fmt.Errorf("create quota controller: %w", err)
	}
	started := make(chan struct{})
	close(started) // the controller starts its informers itself
	discover := w.client.Discovery().ServerPreferredNamespacedResources
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient: w.client.CoreV1(), ResourceQuotaInformer: w.shared.Core().V1().ResourceQuotas(),
		ResyncPeriod: controller.StaticResyncPeriodFunc(quotaSync), ReplenishmentResyncPeriod: controller.NoResyncPeriodFunc,
		InformerFactory: informerfactory.NewInformerFactory(w.shared, objects), InformersStarted: started,
		DiscoveryFunc: discover, IgnoredResourcesFunc: evaluators.IgnoredResources,
		Registry: generic.NewRegistry(evaluators.Evaluators()), UpdateFilter: install.DefaultUpdateFilter(),
	})
	if err != nil {
		return nil, fmt.Errorf("create quota controller: %w", err)
	}
	return func(ctx context.Context, workers int) {
		var running sync.WaitGroup
		running.Go(func() { c.Run(ctx, workers) })
		running.Go(func() { c.Sync(ctx, discover, resourcesInterval) })
		running.Wait()
	}, nil
}
