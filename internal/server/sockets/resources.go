package sockets

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	resourcesv1alpha1 "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"

	"swiftlet/internal/pod"
)

// resources is PodResources v1.
type resources struct {
	*Server
	resourcesv1.UnsafePodResourcesListerServer
}

// List shows what each pod was given.
func (r *resources) List(context.Context, *resourcesv1.ListPodResourcesRequest) (*resourcesv1.ListPodResourcesResponse, error) {
	pods := r.deps.Pods.List
	if r.cfg.ActivePods {
		pods = r.deps.Pods.Active
	}
	answer := &resourcesv1.ListPodResourcesResponse{}
	for _, p := range pods() {
		answer.PodResources = append(answer.PodResources, r.ofPod(p))
	}
	return answer, nil
}

// Get shows one pod.
func (r *resources) Get(_ context.Context, q *resourcesv1.GetPodResourcesRequest) (*resourcesv1.GetPodResourcesResponse, error) {
	p, ok := r.deps.Pods.ByName(q.PodNamespace, q.PodName)
	if !ok {
		// Without a code, as clients know it.
		return nil, fmt.Errorf("pod %s in namespace %s not found", q.PodName, q.PodNamespace)
	}
	return &resourcesv1.GetPodResourcesResponse{PodResources: r.ofPod(p)}, nil
}

// GetAllocatableResources shows what there is to give, given or not.
func (r *resources) GetAllocatableResources(context.Context, *resourcesv1.AllocatableResourcesRequest) (*resourcesv1.AllocatableResourcesResponse, error) {
	return &resourcesv1.AllocatableResourcesResponse{
		Devices: r.deps.Devices.AllocatableDevices(),
		CpuIds:  r.deps.CPUs.AllocatableCPUs(),
		Memory:  r.deps.Memory.AllocatableMemory(),
	}, nil
}

// ofPod leaves out init containers that end before the others begin, and with them gives
// back what they had.
func (r *resources) ofPod(p *v1.Pod) *resourcesv1.PodResources {
	shown := &resourcesv1.PodResources{Name: p.Name, Namespace: p.Namespace}
	if r.cfg.PodLevel {
		shown.CpuIds, shown.Memory = r.deps.CPUs.PodCPUs(p.UID), r.deps.Memory.PodMemory(p.UID)
	}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; pod.IsSidecar(c) {
			shown.Containers = append(shown.Containers, r.ofContainer(p, c))
		}
	}
	for i := range p.Spec.Containers {
		shown.Containers = append(shown.Containers, r.ofContainer(p, &p.Spec.Containers[i]))
	}
	return shown
}

func (r *resources) ofContainer(p *v1.Pod, c *v1.Container) *resourcesv1.ContainerResources {
	return &resourcesv1.ContainerResources{
		Name:             c.Name,
		Devices:          r.deps.Devices.Devices(p.UID, c.Name),
		CpuIds:           r.deps.CPUs.CPUs(p, c),
		Memory:           r.deps.Memory.Memory(p, c),
		DynamicResources: r.deps.Claims.DynamicResources(p, c),
	}
}

// oldResources is PodResources v1alpha1, which knows devices alone.
type oldResources struct {
	*Server
	resourcesv1alpha1.UnsafePodResourcesListerServer
}

// List shows the devices of each pod.
func (r *oldResources) List(context.Context, *resourcesv1alpha1.ListPodResourcesRequest) (*resourcesv1alpha1.ListPodResourcesResponse, error) {
	answer := &resourcesv1alpha1.ListPodResourcesResponse{}
	for _, p := range r.deps.Pods.List() {
		shown := &resourcesv1alpha1.PodResources{Name: p.Name, Namespace: p.Namespace}
		for _, c := range p.Spec.Containers {
			one := &resourcesv1alpha1.ContainerResources{Name: c.Name}
			for _, d := range r.deps.Devices.Devices(p.UID, c.Name) {
				one.Devices = append(one.Devices, &resourcesv1alpha1.ContainerDevices{ResourceName: d.ResourceName, DeviceIds: d.DeviceIds})
			}
			shown.Containers = append(shown.Containers, one)
		}
		answer.PodResources = append(answer.PodResources, shown)
	}
	return answer, nil
}
