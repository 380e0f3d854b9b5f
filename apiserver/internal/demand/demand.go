// Package demand finds out which controllers the objects of the API need, so that the others are not started:
// from requests, as an admission plugin, and from what is stored.
package demand

import (
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/controller/endpoint"
)

// Controller is the name of a controller, as in kube-controller-manager.
type Controller string

// Controllers that are started when an object needs them.
const (
	Deployment             Controller = "deployment-controller"
	ReplicaSet             Controller = "replicaset-controller"
	ReplicationController  Controller = "replicationcontroller-controller"
	StatefulSet            Controller = "statefulset-controller"
	DaemonSet              Controller = "daemonset-controller"
	Job                    Controller = "job-controller"
	CronJob                Controller = "cronjob-controller"
	TTLAfterFinished       Controller = "ttl-after-finished-controller"
	EndpointSlice          Controller = "endpointslice-controller"
	ServiceProxy           Controller = "service-proxy"
	Endpoints              Controller = "endpoints-controller"
	EndpointSliceMirroring Controller = "endpointslice-mirroring-controller"
	Disruption             Controller = "disruption-controller"
	ResourceQuota          Controller = "resourcequota-controller"
	ClaimProtection        Controller = "persistentvolumeclaim-protection-controller"
	VolumeProtection       Controller = "persistentvolume-protection-controller"
	AttributesProtection   Controller = "volumeattributesclass-protection-controller"
	GarbageCollector       Controller = "garbage-collector-controller"
	VolumeBinder           Controller = "persistentvolume-binder-controller"
	EphemeralVolumes       Controller = "ephemeral-volume-controller"
	DeviceClaims           Controller = "resourceclaim-controller"
	PodAutoscaler          Controller = "horizontal-pod-autoscaler-controller"
	NodeLifecycle          Controller = "node-lifecycle-controller"
	Scheduler              Controller = "kube-scheduler"
)

var services, endpoints = schema.GroupResource{Resource: "services"}, schema.GroupResource{Resource: "endpoints"}

// ofResource has the controllers that objects of a resource need.
var ofResource = map[schema.GroupResource][]Controller{
	{Group: "apps", Resource: "deployments"}:                       {Deployment, ReplicaSet, GarbageCollector},
	{Group: "apps", Resource: "replicasets"}:                       {ReplicaSet, GarbageCollector},
	{Group: "apps", Resource: "statefulsets"}:                      {StatefulSet, GarbageCollector},
	{Group: "apps", Resource: "daemonsets"}:                        {DaemonSet, GarbageCollector},
	{Group: "batch", Resource: "jobs"}:                             {Job, TTLAfterFinished, GarbageCollector},
	{Group: "batch", Resource: "cronjobs"}:                         {CronJob, Job, TTLAfterFinished, GarbageCollector},
	{Group: "", Resource: "replicationcontrollers"}:                {ReplicationController, GarbageCollector},
	{Group: "", Resource: "persistentvolumeclaims"}:                {ClaimProtection, VolumeBinder, EphemeralVolumes},
	{Group: "", Resource: "persistentvolumes"}:                     {VolumeProtection, VolumeBinder},
	{Group: "autoscaling", Resource: "horizontalpodautoscalers"}:   {PodAutoscaler},
	{Group: "storage.k8s.io", Resource: "volumeattributesclasses"}: {AttributesProtection},
	{Group: "policy", Resource: "poddisruptionbudgets"}:            {Disruption},
	{Group: "", Resource: "resourcequotas"}:                        {ResourceQuota},
	{Group: "resource.k8s.io", Resource: "resourceclaims"}:         {DeviceClaims},
	{Group: "resource.k8s.io", Resource: "resourceclaimtemplates"}: {DeviceClaims},
	endpoints: {EndpointSliceMirroring},
	services:  {EndpointSlice, Endpoints, ServiceProxy, GarbageCollector},
}

// of returns the controllers that an object needs.
func of(resource schema.GroupResource, object metav1.Object) []Controller {
	if resource == services && object.GetNamespace() == metav1.NamespaceDefault && object.GetName() == "kubernetes" {
		return nil // the API server's own, which selects no pods
	}
	if resource == endpoints && object.GetLabels()[endpoint.LabelManagedBy] == endpoint.ControllerName {
		return nil // made of a Service that has slices, too
	}
	controllers := slices.Clone(ofResource[resource])
	if slices.ContainsFunc(object.GetOwnerReferences(), collectable) {
		controllers = append(controllers, GarbageCollector)
	}
	for _, finalizer := range object.GetFinalizers() {
		switch finalizer {
		case batchv1.JobTrackingFinalizer: // the Job may be gone
			controllers = append(controllers, Job)
		case metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
			controllers = append(controllers, GarbageCollector)
		}
	}
	return controllers
}

// collectable reports whether an object goes with its owner. The node stays, and every lease, mirror pod and
// CSINode of the kubelet has it as owner.
func collectable(owner metav1.OwnerReference) bool {
	return owner.APIVersion != "v1" || owner.Kind != "Node"
}

// Demand collects which controllers are needed.
type Demand struct {
	mu    sync.Mutex
	known map[Controller]bool
	first chan Controller
}

// New returns a demand for no controller.
func New() *Demand {
	all := map[Controller]bool{GarbageCollector: true, NodeLifecycle: true, Scheduler: true}
	for _, controllers := range ofResource {
		for _, c := range controllers {
			all[c] = true
		}
	}
	return &Demand{known: map[Controller]bool{}, first: make(chan Controller, len(all))}
}

// First gives each controller once, when it is needed first.
func (d *Demand) First() <-chan Controller { return d.first }

// Add adds controllers. It does not block: there is room for every one.
func (d *Demand) Add(controllers ...Controller) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range controllers {
		if !d.known[c] {
			d.known[c] = true
			d.first <- c
		}
	}
}
