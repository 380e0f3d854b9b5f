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
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"

	"swiftlet/apiserver/internal/demand"
	"swiftlet/apiserver/internal/serviceproxy"
)

const (
	// resourcesInterval is how often the garbage collector looks for new custom resources, as with
	// kube-controller-manager.
	resourcesInterval = 30 * time.Second
	// storedRetry is how soon the stored objects are listed again after an error.
	storedRetry = time.Second
	// failedDaemonFirst and failedDaemonLast limit how often a failed pod of a DaemonSet is replaced, as with
	// kube-controller-manager.
	failedDaemonFirst, failedDaemonLast = time.Second, 15 * time.Minute
)

// WorkloadConfig holds the settings of workload controllers.
type WorkloadConfig struct {
	Node    string // that pods are bound to
	Volumes string // directory of local-path volumes
	// Proxy leads Services to pods. Without it, Services have endpoints, but nothing leads to them.
	Proxy *serviceproxy.Config
}

// Workloads has the controllers that are started when an object needs them. They then run until the end.
type Workloads struct {
	cfg        WorkloadConfig
	config     *rest.Config
	client     kubernetes.Interface
	objects    metadata.Interface
	shared     informers.SharedInformerFactory
	scheduling informers.SharedInformerFactory // nil until a controller needs it
	demand     *demand.Demand
}

// NewWorkloads returns controllers for what is in demand.
func NewWorkloads(cfg WorkloadConfig, config *rest.Config, shared informers.SharedInformerFactory, needed *demand.Demand) (*Workloads, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create workload controllers: %w", err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create workload controllers: %w", err)
	}
	return &Workloads{cfg: cfg, config: config, client: client, objects: objects, shared: shared, demand: needed}, nil
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
	starter{needed: w.demand.First(), create: w.create, created: func() {
		w.shared.Start(ctx.Done()) // informers that are not running
		if w.scheduling != nil {
			w.scheduling.Start(ctx.Done())
		}
	}}.run(ctx)
}

// create returns what runs a controller.
func (w *Workloads) create(ctx context.Context, name demand.Controller) (runner, error) {
	core, apps, batch := w.shared.Core().V1(), w.shared.Apps().V1(), w.shared.Batch().V1()
	pods := core.Pods()
	switch name {
	case demand.Deployment:
		c, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), pods, w.client)
		return runs(c, err)
	case demand.ReplicaSet:
		return replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), pods, w.client, replicaset.BurstReplicas).Run, nil
	case demand.ReplicationController:
		return replication.NewReplicationManager(ctx, pods, core.ReplicationControllers(), w.client, replication.BurstReplicas).Run, nil
	case demand.StatefulSet:
		return statefulset.NewStatefulSetController(ctx, pods, apps.StatefulSets(), core.PersistentVolumeClaims(), apps.ControllerRevisions(), w.client).Run, nil
	case demand.DaemonSet:
		c, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), pods, core.Nodes(), w.client,
			flowcontrol.NewBackOff(failedDaemonFirst, failedDaemonLast))
		return runs(c, err)
	case demand.Job:
		scheduling := w.shared.Scheduling().V1beta1() // used if a feature gate is on
		c, err := job.NewController(ctx, w.client, pods, batch.Jobs(), scheduling.Workloads(), scheduling.PodGroups())
		return runs(c, err)
	case demand.CronJob:
		c, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), w.client)
		return runs(c, err)
	case demand.TTLAfterFinished:
		return ttlafterfinished.New(ctx, batch.Jobs(), w.client).Run, nil
	case demand.EndpointSlice, demand.Endpoints, demand.EndpointSliceMirroring:
		return w.endpoints(ctx, name), nil
	case demand.Disruption:
		return w.disruption(ctx)
	case demand.ResourceQuota:
		return w.quota(ctx)
	case demand.ServiceProxy:
		return w.serviceProxy(ctx)
	case demand.ClaimProtection:
		c, err := pvcprotection.NewPVCProtectionController(klog.FromContext(ctx), core.PersistentVolumeClaims(), pods, w.client)
		return runs(c, err)
	case demand.VolumeProtection:
		c, err := pvprotection.NewPVProtectionController(klog.FromContext(ctx), core.PersistentVolumes(), w.client)
		return runs(c, err)
	case demand.AttributesProtection:
		return runs(w.attributesProtection(ctx))
	case demand.GarbageCollector:
		return w.garbageCollector(ctx)
	case demand.VolumeBinder:
		return w.volumeBinder(ctx)
	case demand.EphemeralVolumes:
		return w.ephemeralVolumes(ctx)
	case demand.DeviceClaims:
		return w.deviceClaims(ctx)
	case demand.PodAutoscaler:
		return w.podAutoscaler(ctx)
	case demand.NodeLifecycle:
		return w.nodeLifecycle(ctx, w.schedulingInformers())
	case demand.Scheduler:
		return w.scheduler(ctx, w.schedulingInformers())
	}
	return nil, errors.New("no such controller")
}

// runner runs a controller until ctx is done.
type runner func(ctx context.Context, workers int)

func runs(controller interface {
	Run(ctx context.Context, workers int)
}, err error,
) (runner, error) {
	if err != nil {
		return nil, err
	}
	return controller.Run, nil
}

// serviceProxy does nothing if the node has none.
func (w *Workloads) serviceProxy(ctx context.Context) (runner, error) {
	if w.cfg.Proxy == nil {
		return func(context.Context, int) {}, nil
	}
	proxy, err := serviceproxy.New(ctx, *w.cfg.Proxy, w.shared.Core().V1().Services(), w.shared.Discovery().V1().EndpointSlices())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, _ int) { proxy.Run(ctx) }, nil
}

// garbageCollector keeps only the owners of objects in memory. It asks the API server about an owner that it
// has not seen before it deletes an object.
func (w *Workloads) garbageCollector(ctx context.Context) (runner, error) {
	owners := metadatainformer.NewSharedInformerFactoryWithOptions(w.objects, 0, metadatainformer.WithTransform(keepOwners))
	started := make(chan struct{})
	close(started) // the collector starts its informers itself
	collector, err := garbagecollector.NewGarbageCollector(ctx, w.client, w.objects, w.mapper(),
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
