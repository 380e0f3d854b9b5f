package sockets

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Devices are those that device plugins offer.
type Devices interface {
	Devices(pod types.UID, container string) []*resourcesv1.ContainerDevices
	AllocatableDevices() []*resourcesv1.ContainerDevices
}

// CPUs are those that only one container, or one pod, may use.
type CPUs interface {
	CPUs(p *v1.Pod, c *v1.Container) []int64
	PodCPUs(pod types.UID) []int64
	AllocatableCPUs() []int64
}

// Memory is what was set aside on NUMA nodes.
type Memory interface {
	Memory(p *v1.Pod, c *v1.Container) []*resourcesv1.ContainerMemory
	PodMemory(pod types.UID) []*resourcesv1.ContainerMemory
	AllocatableMemory() []*resourcesv1.ContainerMemory
}

// Claims are what DRA drivers have prepared.
type Claims interface {
	DynamicResources(p *v1.Pod, c *v1.Container) []*resourcesv1.DynamicResource
}

// nothing stands for a provider that is not there.
type nothing struct{}

func (nothing) Devices(types.UID, string) []*resourcesv1.ContainerDevices { return nil }
func (nothing) AllocatableDevices() []*resourcesv1.ContainerDevices       { return nil }

func (nothing) CPUs(*v1.Pod, *v1.Container) []int64 { return nil }
func (nothing) PodCPUs(types.UID) []int64           { return nil }
func (nothing) AllocatableCPUs() []int64            { return nil }

func (nothing) Memory(*v1.Pod, *v1.Container) []*resourcesv1.ContainerMemory { return nil }
func (nothing) PodMemory(types.UID) []*resourcesv1.ContainerMemory           { return nil }
func (nothing) AllocatableMemory() []*resourcesv1.ContainerMemory            { return nil }

func (nothing) DynamicResources(*v1.Pod, *v1.Container) []*resourcesv1.DynamicResource { return nil }
