package cgroup

import (
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
)

// ResourcePID names the number of processes in the list that EnsureNode takes. It is no
// resource of the API.
const ResourcePID v1.ResourceName = "pid"

// EnsureNode makes the group of all pods, bounded to what the node has for them (cpu,
// memory, ResourcePID, hugepages-*), and the groups of the QoS classes. It may be called
// again with new bounds. Lowering memory below what pods use fails, and may be retried.
func (t *Tree) EnsureNode(allocatable v1.ResourceList) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.node = allocatable.DeepCopy()
	return t.ensureNode()
}

// ensureNode is called under the lock: nobody is to find some of the groups only.
func (t *Tree) ensureNode() error {
	if err := t.writer.create(t.top, t.allPods()); err != nil {
		return fmt.Errorf("ensure the node's cgroup: %w", err)
	}
	for _, class := range []v1.PodQOSClass{v1.PodQOSBestEffort, v1.PodQOSBurstable} {
		if err := t.writer.create(t.class(class), t.classBounds(class, t.qos)); err != nil {
			return fmt.Errorf("ensure a QoS cgroup: %w", err)
		}
	}
	return nil
}

// allPods are the bounds of all pods together.
func (t *Tree) allPods() Resources {
	r := t.protected(t.qos)
	if cpu, ok := t.node[v1.ResourceCPU]; ok {
		// The kernel's default weight would starve all pods together beside one process
		// of the system, so this is set whether or not limits are enforced.
		r.CPUShares = Shares(cpu.MilliValue())
	}
	if memory, ok := t.node[v1.ResourceMemory]; ok {
		r.Memory = memory.Value()
	}
	if pids, ok := t.node[ResourcePID]; ok {
		r.PIDs = pids.Value()
	}
	return r
}

// restore makes the groups above pods again if something removed them.
func (t *Tree) restore(class name) error {
	if exists(t.hierarchy.witness(class.path(t.driver))) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.node == nil {
		return nil // EnsureNode has not run: tests, and nodes without cgroups per QoS
	}
	t.log.Warn("the cgroup of all pods has vanished, making it again", "cgroup", class.path(t.driver))
	return t.ensureNode()
}

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}
