package resourcemetrics

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/metrics/pkg/apis/metrics"
)

// nodes is the storage of NodeMetrics. There is one: that of the node that the kubelet is on.
type nodes struct {
	noStore
	local localNode
}

// pods is the storage of PodMetrics.
type pods struct {
	noStore
	local localNode
	pods  corelisters.PodLister
}

// readOnly is what can be read of a resource.
type readOnly interface {
	rest.Storage
	rest.Scoper
	rest.Getter
	rest.Lister
	rest.SingularNameProvider
}

var _, _ readOnly = (*nodes)(nil), (*pods)(nil)

// noStore is what storages do without a store.
type noStore struct{}

// Destroy implements rest.Storage.
func (noStore) Destroy() {}

// localNode reads the use of the node of that name.
type localNode struct {
	name  string
	nodes corelisters.NodeLister
	usage *Usage
}

// New implements rest.Storage.
func (*nodes) New() runtime.Object { return &metrics.NodeMetrics{} }

// NewList implements rest.Lister.
func (*nodes) NewList() runtime.Object { return &metrics.NodeMetricsList{} }

// NamespaceScoped implements rest.Scoper.
func (*nodes) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (*nodes) GetSingularName() string { return "" }

// Kind implements rest.KindProvider.
func (*nodes) Kind() string { return "NodeMetrics" }

// Get implements rest.Getter.
func (s *nodes) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	node, err := s.local.nodes.Get(name)
	if err != nil || name != s.local.name {
		return nil, apierrors.NewNotFound(metrics.Resource("nodes"), name)
	}
	report, err := s.local.usage.get(ctx, node)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	return nodeMetrics(node, report), nil
}

// List implements rest.Lister.
func (s *nodes) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	list := &metrics.NodeMetricsList{}
	node, err := s.local.nodes.Get(s.local.name)
	if err != nil || !selects(options, node) { // it has not registered, or no one asks for it
		return list, nil
	}
	report, err := s.local.usage.get(ctx, node)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	list.Items = append(list.Items, *nodeMetrics(node, report))
	return list, nil
}

// New implements rest.Storage.
func (*pods) New() runtime.Object { return &metrics.PodMetrics{} }

// NewList implements rest.Lister.
func (*pods) NewList() runtime.Object { return &metrics.PodMetricsList{} }

// NamespaceScoped implements rest.Scoper.
func (*pods) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (*pods) GetSingularName() string { return "" }

// Kind implements rest.KindProvider.
func (*pods) Kind() string { return "PodMetrics" }

// Get implements rest.Getter.
func (s *pods) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	notFound := apierrors.NewNotFound(metrics.Resource("pods"), name)
	pod, err := s.pods.Pods(request.NamespaceValue(ctx)).Get(name)
	if err != nil {
		return nil, notFound
	}
	found, err := s.of(ctx, pod)
	switch {
	case err != nil:
		return nil, apierrors.NewServiceUnavailable(err.Error())
	case len(found) == 0:
		return nil, notFound
	}
	return &found[0], nil
}

// List implements rest.Lister.
func (s *pods) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	selector := labels.Everything()
	if options != nil && options.LabelSelector != nil {
		selector = options.LabelSelector
	}
	all, err := s.pods.Pods(request.NamespaceValue(ctx)).List(selector)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(pod *corev1.Pod) bool { return !selects(options, pod) })
	found, err := s.of(ctx, all...)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	return &metrics.PodMetricsList{Items: found}, nil
}

// of returns what those of the pods use that run, by namespace and name.
func (s *pods) of(ctx context.Context, all ...*corev1.Pod) ([]metrics.PodMetrics, error) {
	found := []metrics.PodMetrics{}
	node, err := s.local.nodes.Get(s.local.name)
	if err != nil || len(all) == 0 { // the node has not registered
		return found, nil
	}
	report, err := s.local.usage.get(ctx, node)
	if err != nil {
		return nil, err
	}
	for _, pod := range all {
		if containers := report.containers[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]; containers != nil {
			found = append(found, podMetrics(pod, containers))
		}
	}
	slices.SortFunc(found, func(a, b metrics.PodMetrics) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return found, nil
}

// selects reports whether an object is among those that are asked for.
func selects(options *internalversion.ListOptions, object metav1.Object) bool {
	if options == nil {
		return true
	}
	return (options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(object.GetLabels()))) &&
		(options.FieldSelector == nil || options.FieldSelector.Matches(fields.Set{
			metav1.ObjectNameField: object.GetName(), "metadata.namespace": object.GetNamespace(),
		}))
}

func nodeMetrics(node *corev1.Node, r *report) *metrics.NodeMetrics {
	return &metrics.NodeMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, CreationTimestamp: metav1.NewTime(r.node.at)},
		Timestamp:  metav1.NewTime(r.node.at), Window: window(r.node.window), Usage: r.node.resources(),
	}
}

func podMetrics(pod *corev1.Pod, containers map[string]used) metrics.PodMetrics {
	m := metrics.PodMetrics{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels}}
	for name, u := range containers {
		m.Containers = append(m.Containers, metrics.ContainerMetrics{Name: name, Usage: u.resources()})
		if m.Timestamp.IsZero() || u.at.Before(m.Timestamp.Time) {
			m.Timestamp, m.Window = metav1.NewTime(u.at), window(u.window)
		}
	}
	m.CreationTimestamp = m.Timestamp
	slices.SortFunc(m.Containers, func(a, b metrics.ContainerMetrics) int { return strings.Compare(a.Name, b.Name) })
	return m
}

// window is precise enough to be read.
func window(d time.Duration) metav1.Duration {
	return metav1.Duration{Duration: d.Round(time.Millisecond)}
}

func (u used) resources() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewScaledQuantity(int64(u.nanoCores), resource.Nano),
		corev1.ResourceMemory: *resource.NewQuantity(int64(u.memory), resource.BinarySI),
	}
}
