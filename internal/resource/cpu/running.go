package cpu

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
	"swiftlet/internal/resource/topology"
)

// Running is a running container and its CPU affinity.
type Running struct {
	UID       types.UID
	Container string
	CPUs      cpuset.CPUSet
}

// Containers reads the runtime's containers; cri.Client is one.
type Containers interface {
	ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error)
	ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error)
}

// ListRunning lists the running containers of pods and their CPU affinity.
func ListRunning(containers Containers) ([]Running, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list, err := containers.ListContainers(ctx, &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	})
	if err != nil {
		return nil, err
	}
	var running []Running
	for _, c := range list {
		ref, ours := cri.RefFrom(c.Labels)
		if !ours {
			continue
		}
		status, err := containers.ContainerStatus(ctx, c.Id, false)
		if err != nil {
			return nil, err
		}
		at := cri.ContainerFrom(status.Status)
		cpus, err := cpusOf(&at)
		if err != nil {
			return nil, fmt.Errorf("read CPUs of container %s: %w", c.Id, err)
		}
		running = append(running, Running{UID: ref.UID, Container: at.Name, CPUs: cpus})
	}
	return running, nil
}

func cpusOf(c *pod.Container) (cpuset.CPUSet, error) {
	if c.Resources == nil {
		return cpuset.New(), nil
	}
	return topology.ParseList(c.Resources.CPUs)
}
