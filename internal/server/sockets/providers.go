package sockets

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Devices reports the devices of device plugins.
type Devices interface {
	Devices(pod types.UID, container string) []*resourcesv1.ContainerDevices
	AllocatableDevices() []*resourcesv1.ContainerDevices
}

// CPUs reports the exclusive CPUs of containers and pods.
type CPUs interface {
	CPUs(p *v1.Pod, c *v1.Container) []int64
	PodCPUs(pod types.UID) []int64
	AllocatableCPUs() []int64
}

// Memory reports the memory reserved on NUMA nodes.
type Memory interface {
	Memory(p *v1.Pod, c *v1.Container) []*resourcesv1.ContainerMemory
	PodMemory(pod types.UID) []*resourcesv1.ContainerMemory
	AllocatableMemory() []*resourcesv1.ContainerMemory
}

// Claims reports the devices that DRA drivers have prepared.
type Claims interface {
	DynamicResources(p *v1.Pod, c *v1.Container) []*resourcesv1.DynamicResource
}

// noProvider replaces a provider that is not configured.
type noProvider struct{}

func (noProvider) Devices(types.UID, string) []*resourcesv1.ContainerDevices { return nil }
func (noProvider) AllocatableDevices() []*resourcesv1.ContainerDevices       { return nil }

func (noProvider) CPUs(*v1.Pod, *v1.Container) []int64 { return nil }
func (noProvider) PodCPUs(types.UID) []int64           { return nil }
func (noProvider) AllocatableCPUs() []int64            { return nil }

func (noProvider) Memory(*v1.Pod, *v1.Container) []*resourcesv1.ContainerMemory { return nil }
func (noProvider) PodMemory(types.UID) []*resourcesv1.ContainerMemory           { return nil }
func (noProvider) AllocatableMemory() []*resourcesv1.ContainerMemory            { return nil }

func (noProvider) DynamicResources(*v1.Pod, *v1.Container) []*resourcesv1.DynamicResource { return nil }
