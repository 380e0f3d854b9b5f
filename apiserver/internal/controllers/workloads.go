package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"

	"swiftlet/apiserver/internal/demand"
)

const (
	// resourcesInterval is how often the garbage collector looks for new custom resources, as with
	// kube-controller-manager.
	resourcesInterval = 30 * time.Second
	// storedRetry is how soon the stored objects are listed again after an error.
	storedRetry = time.Second
)

// Workloads has the controllers that are started when an object needs them. They then run until the end.
type Workloads struct {
	client  kubernetes.Interface
	objects metadata.Interface
	shared  informers.SharedInformerFactory
	demand  *demand.Demand
}

// NewWorkloads returns controllers for what is in demand.
func NewWorkloads(config *rest.Config, shared informers.SharedInformerFactory, needed *demand.Demand) (*Workloads, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create workload controllers: %w", err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create workload controllers: %w", err)
	}
	return &Workloads{client: client, objects: objects, shared: shared, demand: needed}, nil
}

// AddStored adds what stored objects need to the demand. Custom resources must be served.
func (w *Workloads) AddStored(ctx context.Context) {
	log := klog.FromContext(ctx)
	_ = wait.PollUntilContextCancel(ctx, storedRetry, true, func(ctx context.Context) (bool, error) { // fails when ctx is done
		resources, err := garbagecollector.GetDeletableResources(ctx, discovery.ToServerResourcesInterfaceWithContext(w.client.Discovery()))
		if err == nil {
			for ignored := range garbagecollector.DefaultIgnoredResources() {
				for resource := range resources {
					if resource.GroupResource() == ignored {
						delete(resources, resource)
					}
				}
			}
			err = w.demand.AddStored(ctx, w.objects, resources)
		}
		if err != nil {
			log.Error(err, "controllers: list stored objects failed")
		}
		return err == nil, nil
	})
}

// Run starts controllers when they are needed, until ctx is done.
func (w *Workloads) Run(ctx context.Context) {
	log := klog.FromContext(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-w.demand.First():
			run, err := w.create(ctx, name)
			if err != nil {
				log.Error(err, "controllers: start failed", "controller", name)
				continue
			}
			log.Info("controllers: started", "controller", name)
			w.shared.Start(ctx.Done()) // informers that are not running
			running.Go(func() { run(ctx, workers) })
		}
	}
}

// create returns what runs a controller.
func (w *Workloads) create(ctx context.Context, name demand.Controller) (func(ctx context.Context, workers int), error) {
	apps, batch, pods := w.shared.Apps().V1(), w.shared.Batch().V1(), w.shared.Core().V1().Pods()
	switch name {
	case demand.Deployment:
		c, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), pods, w.client)
		if err != nil {
			return nil, err
		}
		return c.Run, nil
	case demand.ReplicaSet:
		return replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), pods, w.client, replicaset.BurstReplicas).Run, nil
	case demand.Job:
		scheduling := w.shared.Scheduling().V1beta1() // used if a feature gate is on
		c, err := job.NewController(ctx, w.client, pods, batch.Jobs(), scheduling.Workloads(), scheduling.PodGroups())
		if err != nil {
			return nil, err
		}
		return c.Run, nil
	case demand.TTLAfterFinished:
		return ttlafterfinished.New(ctx, batch.Jobs(), w.client).Run, nil
	case demand.GarbageCollector:
		return w.garbageCollector(ctx)
	}
	return nil, errors.New("no such controller")
}

// garbageCollector keeps only the owners of objects in memory. It asks the API server about an owner that it
// has not seen before it deletes an object.
func (w *Workloads) garbageCollector(ctx context.Context) (func(ctx context.Context, workers int), error) {
	owners := metadatainformer.NewSharedInformerFactoryWithOptions(w.objects, 0, metadatainformer.WithTransform(keepOwners))
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(w.client.Discovery()))
	started := make(chan struct{})
	close(started) // the collector starts its informers itself
	collector, err := garbagecollector.NewGarbageCollector(ctx, w.client, w.objects, mapper,
		garbagecollector.DefaultIgnoredResources(), ownerInformers{owners}, started)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, workers int) {
		var running sync.WaitGroup
		running.Go(func() { collector.Run(ctx, workers, resourcesInterval) })
		running.Go(func() { collector.Sync(ctx, w.client.Discovery(), resourcesInterval) })
		running.Wait()
	}, nil
}

// keepOwners drops what the garbage collector does not read.
func keepOwners(object any) (any, error) {
	if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		o.ManagedFields, o.Annotations, o.Labels = nil, nil, nil
	}
	return object, nil
}

// ownerInformers are informers that have metadata alone, for built-in resources as well.
type ownerInformers struct {
	metadatainformer.SharedInformerFactory
}

// ForResource returns the informer of a resource.
func (i ownerInformers) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return i.SharedInformerFactory.ForResource(resource), nil
}
