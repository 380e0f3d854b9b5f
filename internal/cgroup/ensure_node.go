package cgroup

import (
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
)

// ResourcePID is the number of processes in the list passed to EnsureNode. It is not a resource
// of the API.
const ResourcePID v1.ResourceName = "pid"

// EnsureNode creates the cgroup of all pods, limited to the node's allocatable resources (cpu,
// memory, ResourcePID, hugepages-*), and the cgroups of the QoS classes. It may be called again
// with other amounts. It fails where pods use more memory than the new limit; retry it then.
func (t *Tree) EnsureNode(allocatable v1.ResourceList) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.allocatable = allocatable.DeepCopy()
	return t.ensureNode()
}

// ensureNode is called with the lock held, so that concurrent callers do not find some of the
// cgroups missing.
func (t *Tree) ensureNode() error {
	if err := t.writer.create(t.kubepods, t.kubepodsResources()); err != nil {
		return fmt.Errorf("ensure the node's cgroup: %w", err)
	}
	for _, class := range []v1.PodQOSClass{v1.PodQOSBestEffort, v1.PodQOSBurstable} {
		if err := t.writer.create(t.qosCgroup(class), t.qosResources(class, t.qos)); err != nil {
			return fmt.Errorf("ensure a QoS cgroup: %w", err)
		}
	}
	return nil
}

// kubepodsResources returns the limits of all pods together.
func (t *Tree) kubepodsResources() Resources {
	r := t.memoryProtection(t.qos)
	if cpu, ok := t.allocatable[v1.ResourceCPU]; ok {
		// With the kernel's default weight all pods together would get as much CPU time as one
		// system service, so this is set whether or not limits are enforced.
		r.CPUShares = Shares(cpu.MilliValue())
	}
	if memory, ok := t.allocatable[v1.ResourceMemory]; ok {
		r.Memory = memory.Value()
	}
	if pids, ok := t.allocatable[ResourcePID]; ok {
		r.PIDs = pids.Value()
	}
	return r
}

// recreateParents creates the cgroups above pods again where something removed them.
func (t *Tree) recreateParents(class cgroupName) error {
	if exists(t.hierarchy.primaryDir(class.path(t.driver))) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.allocatable == nil {
		return nil // EnsureNode has not run: in tests, and with cgroupsPerQOS off
	}
	t.log.Warn("cgroup of pods was removed, creating it again", "cgroup", class.path(t.driver))
	return t.ensureNode()
}

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}
