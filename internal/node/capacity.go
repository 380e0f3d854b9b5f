package node

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/config"
	exclusive "swiftlet/internal/resource"
)

// Reserved are the resources that pods may not use.
type Reserved struct {
	Kube, System v1.ResourceList
	// EvictionHard are the hard eviction thresholds by signal. They reduce allocatable, but
	// not the limits of the pods cgroup.
	EvictionHard map[string]string
}

// capacityOf is the machine's capacity. diskBytes is the size of the file system of the root
// directory; if it is 0 there is no ephemeral-storage.
func capacityOf(m Machine, maxPods, podsPerCore int, diskBytes int64) v1.ResourceList {
	pods := int64(maxPods)
	if podsPerCore > 0 {
		pods = min(pods, int64(podsPerCore*m.CPUs))
	}
	capacity := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(int64(m.CPUs)*1000, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(m.MemoryBytes, resource.BinarySI),
		v1.ResourcePods:   *resource.NewQuantity(pods, resource.DecimalSI),
	}
	if diskBytes > 0 {
		capacity[v1.ResourceEphemeralStorage] = *resource.NewQuantity(diskBytes, resource.DecimalSI)
	}
	for size, amount := range m.Hugepages {
		name := v1.ResourceHugePagesPrefix + resource.NewQuantity(size, resource.BinarySI).String()
		capacity[v1.ResourceName(name)] = *resource.NewQuantity(amount, resource.BinarySI)
	}
	return capacity
}

// Sum adds up all reservations on a machine with this memory, in bytes.
func (r Reserved) Sum(memory int64) (v1.ResourceList, error) {
	capacity := v1.ResourceList{v1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI)}
	eviction, err := evictionReserve(r.EvictionHard, capacity)
	if err != nil {
		return nil, err
	}
	sum := v1.ResourceList{}
	for _, list := range []v1.ResourceList{r.Kube, r.System, eviction} {
		for name, amount := range list {
			total := sum[name]
			total.Add(amount)
			sum[name] = total
		}
	}
	return sum, nil
}

// Exclusive is what the managers of exclusive CPUs and memory keep from pods on a machine with this memory,
// in bytes.
func (r Reserved) Exclusive(memory int64) (exclusive.Reserved, error) {
	all, err := r.Sum(memory)
	cpu := r.Kube.Cpu().DeepCopy()
	cpu.Add(*r.System.Cpu())
	return exclusive.Reserved{CPU: cpu, All: all}, err
}

// allocatableOf is the capacity less all reservations and huge pages.
func allocatableOf(capacity v1.ResourceList, reserved Reserved) (v1.ResourceList, error) {
	eviction, err := evictionReserve(reserved.EvictionHard, capacity)
	if err != nil {
		return nil, err
	}
	allocatable := subtract(capacity, reserved.Kube, reserved.System, eviction)
	// Memory that is reserved for huge pages cannot be used otherwise.
	memory := allocatable[v1.ResourceMemory]
	for name, amount := range capacity {
		if isHugepages(name) {
			memory.Sub(amount)
		}
	}
	if memory.Sign() < 0 {
		memory.Set(0)
	}
	allocatable[v1.ResourceMemory] = memory
	return allocatable, nil
}

// subtract subtracts the parts from each amount of whole; the least result is zero.
func subtract(whole v1.ResourceList, parts ...v1.ResourceList) v1.ResourceList {
	rest := v1.ResourceList{}
	for name, amount := range whole {
		amount = amount.DeepCopy()
		for _, part := range parts {
			amount.Sub(part[name])
		}
		if amount.Sign() < 0 {
			amount.Set(0)
		}
		rest[name] = amount
	}
	return rest
}

// cgroupLimits are the limits of the cgroup of all pods. They do not subtract eviction
// thresholds: eviction has to act before the kernel's OOM killer.
func cgroupLimits(m Machine, capacity v1.ResourceList, reserved Reserved, enforce bool) v1.ResourceList {
	limits := capacity.DeepCopy()
	delete(limits, v1.ResourcePods)
	delete(limits, v1.ResourceEphemeralStorage)
	if m.MaxPIDs > 0 {
		limits[cgroup.ResourcePID] = *resource.NewQuantity(m.MaxPIDs, resource.DecimalSI)
	}
	if enforce {
		limits = subtract(limits, reserved.Kube, reserved.System)
	}
	return limits
}

// checkReserved returns an error if reservations exceed the capacity.
func checkReserved(capacity v1.ResourceList, reserved Reserved) error {
	eviction, err := evictionReserve(reserved.EvictionHard, capacity)
	if err != nil {
		return err
	}
	for name, amount := range capacity {
		rest := amount.DeepCopy()
		for _, part := range []v1.ResourceList{reserved.Kube, reserved.System, eviction} {
			rest.Sub(part[name])
		}
		if rest.Sign() < 0 {
			return reserved.exceeds(name, amount)
		}
	}
	return nil
}

// exceeds returns the error of reservations of a resource that exceed its capacity. It names the setting
// that reserves most, so that the message leads to a line.
func (r Reserved) exceeds(name v1.ResourceName, capacity resource.Quantity) error {
	field, most := "evictionHard", resource.Quantity{}
	for _, part := range []struct {
		field string
		list  v1.ResourceList
	}{{"kubeReserved", r.Kube}, {"systemReserved", r.System}} {
		if amount, ok := part.list[name]; ok && amount.Cmp(most) > 0 {
			field, most = part.field+"."+string(name), amount
		}
	}
	return config.Invalid(field, "kubeReserved, systemReserved and evictionHard together reserve more %s than the capacity of this host, %s", name, capacity.String())
}

// evictionReserve is the memory and ephemeral-storage that the hard eviction thresholds
// reserve.
func evictionReserve(thresholds map[string]string, capacity v1.ResourceList) (v1.ResourceList, error) {
	reserve := v1.ResourceList{}
	for signal, name := range map[string]v1.ResourceName{
		"memory.available": v1.ResourceMemory,
		"nodefs.available": v1.ResourceEphemeralStorage,
	} {
		text, ok := thresholds[signal]
		if !ok {
			continue
		}
		whole := capacity[name]
		amount, err := threshold(text, whole.Value())
		if err != nil {
			return nil, fmt.Errorf("parse eviction threshold %s: %w", signal, err)
		}
		reserve[name] = amount
	}
	return reserve, nil
}

// threshold parses a quantity, or a percentage of whole.
func threshold(text string, whole int64) (resource.Quantity, error) {
	percent, ok := strings.CutSuffix(text, "%")
	if !ok {
		return resource.ParseQuantity(text)
	}
	number, err := strconv.ParseFloat(percent, 32)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("percentage %q: %w", text, err)
	}
	// Single precision gives the same number of bytes as the reference kubelet.
	share := float32(number) / 100
	return *resource.NewQuantity(int64(float64(whole)*float64(share)), resource.BinarySI), nil
}

func isHugepages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}
