package sockets

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	resourcesv1alpha1 "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"

	"swiftlet/internal/pod"
)

// podResources is PodResources v1.
type podResources struct {
	*Server
	resourcesv1.UnsafePodResourcesListerServer
}

// List returns the resources allocated to each pod.
func (r *podResources) List(context.Context, *resourcesv1.ListPodResourcesRequest) (*resourcesv1.ListPodResourcesResponse, error) {
	pods := r.deps.Pods.List
	if r.cfg.ActivePods {
		pods = r.deps.Pods.Active
	}
	response := &resourcesv1.ListPodResourcesResponse{}
	for _, p := range pods() {
		response.PodResources = append(response.PodResources, r.ofPod(p))
	}
	return response, nil
}

// Get returns the resources allocated to one pod.
func (r *podResources) Get(_ context.Context, q *resourcesv1.GetPodResourcesRequest) (*resourcesv1.GetPodResourcesResponse, error) {
	p, ok := r.deps.Pods.ByName(q.PodNamespace, q.PodName)
	if !ok {
		// The reference kubelet returns no status code either.
		return nil, fmt.Errorf("pod %s in namespace %s not found", q.PodName, q.PodNamespace)
	}
	return &resourcesv1.GetPodResourcesResponse{PodResources: r.ofPod(p)}, nil
}

// GetAllocatableResources returns all allocatable resources, allocated or not.
func (r *podResources) GetAllocatableResources(context.Context, *resourcesv1.AllocatableResourcesRequest) (*resourcesv1.AllocatableResourcesResponse, error) {
	return &resourcesv1.AllocatableResourcesResponse{
		Devices: r.deps.Devices.AllocatableDevices(),
		CpuIds:  r.deps.CPUs.AllocatableCPUs(),
		Memory:  r.deps.Memory.AllocatableMemory(),
	}, nil
}

// ofPod omits init containers that are not sidecars: their resources are released before the
// other containers start.
func (r *podResources) ofPod(p *v1.Pod) *resourcesv1.PodResources {
	resources := &resourcesv1.PodResources{Name: p.Name, Namespace: p.Namespace}
	if r.cfg.PodLevel {
		resources.CpuIds, resources.Memory = r.deps.CPUs.PodCPUs(p.UID), r.deps.Memory.PodMemory(p.UID)
	}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; pod.IsSidecar(c) {
			resources.Containers = append(resources.Containers, r.ofContainer(p, c))
		}
	}
	for i := range p.Spec.Containers {
		resources.Containers = append(resources.Containers, r.ofContainer(p, &p.Spec.Containers[i]))
	}
	return resources
}

func (r *podResources) ofContainer(p *v1.Pod, c *v1.Container) *resourcesv1.ContainerResources {
	return &resourcesv1.ContainerResources{
		Name:             c.Name,
		Devices:          r.deps.Devices.Devices(p.UID, c.Name),
		CpuIds:           r.deps.CPUs.CPUs(p, c),
		Memory:           r.deps.Memory.Memory(p, c),
		DynamicResources: r.deps.Claims.DynamicResources(p, c),
	}
}

// podResourcesV1alpha1 is PodResources v1alpha1, which reports devices only.
type podResourcesV1alpha1 struct {
	*Server
	resourcesv1alpha1.UnsafePodResourcesListerServer
}

// List returns the devices of each pod.
func (r *podResourcesV1alpha1) List(context.Context, *resourcesv1alpha1.ListPodResourcesRequest) (*resourcesv1alpha1.ListPodResourcesResponse, error) {
	response := &resourcesv1alpha1.ListPodResourcesResponse{}
	for _, p := range r.deps.Pods.List() {
		resources := &resourcesv1alpha1.PodResources{Name: p.Name, Namespace: p.Namespace}
		for _, c := range p.Spec.Containers {
			container := &resourcesv1alpha1.ContainerResources{Name: c.Name}
			for _, d := range r.deps.Devices.Devices(p.UID, c.Name) {
				container.Devices = append(container.Devices, &resourcesv1alpha1.ContainerDevices{ResourceName: d.ResourceName, DeviceIds: d.DeviceIds})
			}
			resources.Containers = append(resources.Containers, container)
		}
		response.PodResources = append(response.PodResources, resources)
	}
	return response, nil
}
