package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"swiftlet/apiserver/internal/demand"
)

// The defaults of kube-controller-manager. Rates and thresholds are for clusters.
const (
	nodeMonitorPeriod, nodeStartupGrace, nodeMonitorGrace = 5 * time.Second, time.Minute, 50 * time.Second
	nodeEvictionRate, secondaryEvictionRate               = 0.1, 0.01
	largeCluster, unhealthyZone                           = 50, 0.55
)

// schedulingInformers returns informers with this node alone, and the pods that have not ended. Another name of
// this machine may have left a node object, which no kubelet serves.
func (w *Workloads) schedulingInformers() informers.SharedInformerFactory {
	if w.scheduling != nil {
		return w.scheduling
	}
	w.scheduling = scheduler.NewInformerFactory(w.client, 0, nil)
	w.scheduling.InformerFor(&corev1.Node{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewFilteredNodeInformer(client, resync, cache.Indexers{}, func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, w.cfg.Node).String()
		})
	})
	return w.scheduling
}

// scheduler returns kube-scheduler with its default profile.
func (w *Workloads) scheduler(ctx context.Context, shared informers.SharedInformerFactory) (runner, error) {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: w.client.EventsV1()})
	s, err := scheduler.New(ctx, w.client, shared, nil, profile.NewRecorderFactory(broadcaster))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, _ int) {
		if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "controllers: scheduler records no events")
		}
		defer broadcaster.Shutdown()
		shared.WaitForCacheSync(ctx.Done())
		if s.WaitForHandlersSync(ctx) == nil {
			s.Run(ctx)
		}
	}, nil
}

// nodeLifecycle returns the controller that taints the node while the kubelet reports that it rejects pods.
func (w *Workloads) nodeLifecycle(ctx context.Context, local informers.SharedInformerFactory) (runner, error) {
	c, err := nodelifecycle.NewNodeLifecycleController(ctx, w.shared.Coordination().V1().Leases(), w.shared.Core().V1().Pods(),
		local.Core().V1().Nodes(), w.shared.Apps().V1().DaemonSets(), w.client, nodeMonitorPeriod, nodeStartupGrace, nodeMonitorGrace,
		nodeEvictionRate, secondaryEvictionRate, largeCluster, unhealthyZone)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, _ int) { c.Run(ctx) }, nil
}

// Binder binds pods that fit.
type Binder interface {
	// Run returns true once a pod needs a scheduler.
	Run(ctx context.Context, client kubernetes.Interface) bool
}

// BindPods binds pods without a scheduler until one is needed.
func (w *Workloads) BindPods(ctx context.Context, binder Binder) {
	if binder.Run(ctx, w.client) {
		w.demand.Add(demand.NodeLifecycle, demand.Scheduler, demand.EphemeralVolumes)
	}
}
