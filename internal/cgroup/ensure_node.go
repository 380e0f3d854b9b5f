package cgroup

import (
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// ResourcePID names the number of processes in the list that EnsureNode takes. It is no
// resource of the API.
const ResourcePID v1.ResourceName = "pid"

// EnsureNode makes the group of all pods, bounded to what the node has for them (cpu,
// memory, ResourcePID, hugepages-*), and the groups of the QoS classes. It may be called
// again with new bounds. Lowering memory below what pods use fails, and may be retried.
func (t *Tree) EnsureNode(allocatable v1.ResourceList) error {
	t.mu.Lock()
	t.node = allocatable.DeepCopy()
	t.mu.Unlock()
	return t.ensureNode(allocatable)
}

func (t *Tree) ensureNode(allocatable v1.ResourceList) error {
	r := Resources{Hugepages: hugepages(allocatable)}
	if cpu, ok := allocatable[v1.ResourceCPU]; ok {
		// The kernel's default weight would starve all pods together beside one process
		// of the system, so this is set whether or not limits are enforced.
		r.CPUShares = Shares(cpu.MilliValue())
	}
	if memory, ok := allocatable[v1.ResourceMemory]; ok {
		r.Memory = memory.Value()
	}
	if pids, ok := allocatable[ResourcePID]; ok {
		r.PIDs = pids.Value()
	}
	if err := t.writer.create(t.top, r); err != nil {
		return fmt.Errorf("ensure the node's cgroup: %w", err)
	}
	bestEffort := Resources{CPUShares: MinShares, Hugepages: t.unbounded()}
	if err := t.writer.create(t.class(v1.PodQOSBestEffort), bestEffort); err != nil {
		return fmt.Errorf("ensure a QoS cgroup: %w", err)
	}
	t.mu.Lock()
	shares := t.burstableShares
	t.mu.Unlock()
	// Until UpdateQOS has counted the pods, a burstable class that exists keeps its weight:
	// after a restart of the agent it is right already.
	if err := t.writer.create(t.class(v1.PodQOSBurstable), Resources{CPUShares: shares, Hugepages: t.unbounded()}); err != nil {
		return fmt.Errorf("ensure a QoS cgroup: %w", err)
	}
	return nil
}

// UpdateQOS gives the burstable class the weight that its pods requested together. pods
// are all pods that run or are about to, of any class. It writes only on a change.
func (t *Tree) UpdateQOS(pods []*v1.Pod) error {
	var milliCPU int64
	for _, p := range pods {
		if pod.QOS(p) == v1.PodQOSBurstable {
			milliCPU += cpuRequest(p)
		}
	}
	shares := Shares(milliCPU)
	t.mu.Lock()
	defer t.mu.Unlock()
	if shares == t.burstableShares {
		return nil
	}
	err := t.writer.set(t.class(v1.PodQOSBurstable), Resources{CPUShares: shares, Hugepages: t.unbounded()})
	if err != nil {
		return fmt.Errorf("update the burstable class: %w", err)
	}
	t.burstableShares = shares
	return nil
}

// restore makes the groups above pods again if something removed them.
func (t *Tree) restore(class name) error {
	if exists(t.hierarchy.witness(class.path(t.driver))) {
		return nil
	}
	t.mu.Lock()
	node := t.node
	t.mu.Unlock()
	if node == nil {
		return nil // EnsureNode has not run: tests, and nodes without cgroups per QoS
	}
	t.log.Warn("the cgroup of all pods has vanished, making it again", "cgroup", class.path(t.driver))
	return t.ensureNode(node)
}

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}
