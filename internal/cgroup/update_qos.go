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

// QOSReserve keeps requested memory from lower QoS classes.
type QOSReserve struct {
	// Percent of what is requested, and Memory, all that there is for pods.
	Percent, Memory int64
}

// qosRequests are the sums that the bounds of the classes depend on. The zero value stands
// for "not known yet".
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

// UpdateQOS brings the classes' bounds in step with what their pods request together. pods
// are all pods that run or are about to, of any class. It writes only on a change.
func (t *Tree) UpdateQOS(pods []*v1.Pod) error {
	sum := sumRequests(pods)
	t.mu.Lock()
	defer t.mu.Unlock()
	if sum == t.qos {
		return nil
	}
	if t.node == nil { // EnsureNode is to come, and will make the classes with these
		t.qos = sum
		return nil
	}
	t.qos = qosRequests{} // while some of the bounds may be written and others not
	if t.tiered() {
		// What protects the pods must protect the groups above them first.
		if err := t.writer.set(t.top, t.protected(sum)); err != nil {
			return fmt.Errorf("update the memory protection of all pods: %w", err)
		}
	}
	classes := []v1.PodQOSClass{v1.PodQOSBurstable}
	if t.reserve != nil {
		classes = append(classes, v1.PodQOSBestEffort)
	}
	for _, class := range classes {
		if err := t.writer.set(t.class(class), t.classBounds(class, sum)); err != nil {
			return fmt.Errorf("update the %s class: %w", class, err)
		}
	}
	t.qos = sum
	return nil
}

func (t *Tree) tiered() bool { return t.MemoryQOS != nil && t.MemoryQOS.Tiered }

// protected is what is protected of all pods' memory, and nothing besides.
func (t *Tree) protected(qos qosRequests) Resources {
	r := Resources{Hugepages: hugepages(t.node)}
	switch {
	case !t.tiered(): // an agent before may have had it
		r.MemoryMin, r.MemoryLow = -1, -1
	case qos.known:
		r.MemoryMin, r.MemoryLow = orNone(qos.guaranteed+qos.burstable), orNone(qos.burstable)
	}
	return r
}

// classBounds are the bounds of a class. Until UpdateQOS has counted the pods, one that
// exists keeps its own: after a restart of the agent they are right already.
func (t *Tree) classBounds(class v1.PodQOSClass, qos qosRequests) Resources {
	r := Resources{Hugepages: t.unbounded()}
	isNew := !exists(t.hierarchy.witness(t.class(class).path(t.driver)))
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
			r.MemoryLow = orNone(qos.burstable)
		}
	}
	if t.reserve != nil && qos.known {
		kept := qos.guaranteed * t.reserve.Percent / 100
		if class == v1.PodQOSBestEffort {
			kept += qos.burstable * t.reserve.Percent / 100
		}
		// Below what is in use the kernel refuses (v1) or kills (v2). At what is in use the
		// class grows no further.
		r.Memory = max(t.reserve.Memory-kept, t.memoryUsage(t.class(class)))
	}
	return r
}

// memoryUsage is what a group uses now, 0 where that cannot be read.
func (t *Tree) memoryUsage(n name) int64 {
	file := "/memory.current"
	if t.hierarchy.Version == 1 {
		file = "/memory.usage_in_bytes"
	}
	text, err := os.ReadFile(t.hierarchy.witness(n.path(t.driver)) + file)
	if err != nil {
		return 0
	}
	usage, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return usage
}
