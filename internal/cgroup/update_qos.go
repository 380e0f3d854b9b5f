package cgroup

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// QOSReserved reserves requested memory from the pods of lower QoS classes.
type QOSReserved struct {
	Percent int64 // of the memory requests
	Memory  int64 // of all pods together
}

// qosRequests are the sums of requests that the limits of the QoS classes depend on. In the zero
// value they are unknown.
type qosRequests struct {
	known                 bool
	milliCPU              int64 // of burstable pods
	guaranteed, burstable int64 // memory
}

func sumRequests(pods []*v1.Pod) qosRequests {
	sum := qosRequests{known: true}
	for _, p := range pods {
		requests := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
		switch pod.QOS(p) {
		case v1.PodQOSGuaranteed:
			sum.guaranteed += requests.Memory().Value()
		case v1.PodQOSBurstable:
			sum.burstable += requests.Memory().Value()
			sum.milliCPU += requests.Cpu().MilliValue()
		}
	}
	return sum
}

// UpdateQOS updates the limits of the QoS classes to the sums of their pods' requests. pods are
// all pods that run or are about to, of any class. It writes only changes.
func (t *Tree) UpdateQOS(pods []*v1.Pod) error {
	sum := sumRequests(pods)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tiered() && t.protected != nil {
		t.protected(sum.guaranteed, sum.burstable)
	}
	if sum == t.qos {
		return nil
	}
	if t.allocatable == nil { // EnsureNode will create the classes with these sums
		t.qos = sum
		return nil
	}
	t.qos = qosRequests{} // unknown until all limits are written
	if t.tiered() {
		// Protection of a cgroup is effective only within that of its parent, so write it first.
		if err := t.writer.set(t.kubepods, t.memoryProtection(sum)); err != nil {
			return fmt.Errorf("update the memory protection of all pods: %w", err)
		}
	}
	classes := []v1.PodQOSClass{v1.PodQOSBurstable}
	if t.qosReserved != nil {
		classes = append(classes, v1.PodQOSBestEffort)
	}
	for _, class := range classes {
		if err := t.writer.set(t.qosCgroup(class), t.qosResources(class, sum)); err != nil {
			return fmt.Errorf("update the %s class: %w", class, err)
		}
	}
	t.qos = sum
	return nil
}

func (t *Tree) tiered() bool { return t.MemoryQOS != nil && t.MemoryQOS.Tiered }

// memoryProtection returns the memory protection and the huge page limits of all pods together.
func (t *Tree) memoryProtection(qos qosRequests) Resources {
	r := Resources{Hugepages: hugepages(t.allocatable)}
	switch {
	case !t.tiered(): // a previous kubelet may have set it
		r.MemoryMin, r.MemoryLow = -1, -1
	case qos.known:
		r.MemoryMin, r.MemoryLow = orUnset(qos.guaranteed+qos.burstable), orUnset(qos.burstable)
	}
	return r
}

// qosResources returns the limits of a QoS class. Until UpdateQOS has been called, an existing
// cgroup keeps its limits: after a restart of the kubelet they are up to date.
func (t *Tree) qosResources(class v1.PodQOSClass, qos qosRequests) Resources {
	r := Resources{Hugepages: t.unlimitedHugepages()}
	isNew := !exists(t.hierarchy.primaryDir(t.qosCgroup(class).path(t.driver)))
	if class == v1.PodQOSBestEffort {
		r.CPUShares = MinShares
	} else if qos.known || isNew {
		r.CPUShares = Shares(qos.milliCPU)
	}
	if class == v1.PodQOSBurstable {
		switch {
		case !t.tiered():
			r.MemoryLow = -1
		case qos.known:
			r.MemoryLow = orUnset(qos.burstable)
		}
	}
	if t.qosReserved != nil && qos.known {
		reserved := qos.guaranteed * t.qosReserved.Percent / 100
		if class == v1.PodQOSBestEffort {
			reserved += qos.burstable * t.qosReserved.Percent / 100
		}
		// The kernel rejects a limit below the usage (v1) or kills processes (v2). A limit equal
		// to the usage stops the class from growing.
		r.Memory = max(t.qosReserved.Memory-reserved, t.memoryUsage(t.qosCgroup(class)))
	}
	return r
}

// memoryUsage returns the memory usage of a cgroup, 0 where it cannot be read.
func (t *Tree) memoryUsage(n cgroupName) int64 {
	file := "/memory.current"
	if t.hierarchy.Version == 1 {
		file = "/memory.usage_in_bytes"
	}
	text, err := os.ReadFile(t.hierarchy.primaryDir(n.path(t.driver)) + file)
	if err != nil {
		return 0
	}
	usage, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return usage
}
