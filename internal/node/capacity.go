package node

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/cgroup"
)

// Reserved are the parts of the machine that pods may not have.
type Reserved struct {
	Kube, System v1.ResourceList
	// EvictionHard are the hard eviction thresholds by signal: what eviction would take
	// back at once is not offered in the first place.
	EvictionHard map[string]string
}

// capacityOf is all that the machine has. diskBytes is the size of the file system that
// holds pods' data; 0 leaves it out.
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

// Sum is all that is kept from pods on a machine with this memory, in bytes.
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

// allocatableOf is what of the capacity pods may be given.
func allocatableOf(capacity v1.ResourceList, reserved Reserved) (v1.ResourceList, error) {
	eviction, err := evictionReserve(reserved.EvictionHard, capacity)
	if err != nil {
		return nil, err
	}
	allocatable := less(capacity, reserved.Kube, reserved.System, eviction)
	// Memory set aside for huge pages is not there for anything else.
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

// less subtracts the lists from what is in whole, down to nothing.
func less(whole v1.ResourceList, parts ...v1.ResourceList) v1.ResourceList {
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

// cgroupLimits bound all pods together. Eviction thresholds are not taken off: eviction is
// to act before the kernel does.
func cgroupLimits(m Machine, capacity v1.ResourceList, reserved Reserved, enforce bool) v1.ResourceList {
	limits := capacity.DeepCopy()
	delete(limits, v1.ResourcePods)
	delete(limits, v1.ResourceEphemeralStorage)
	if m.MaxPIDs > 0 {
		limits[cgroup.ResourcePID] = *resource.NewQuantity(m.MaxPIDs, resource.DecimalSI)
	}
	if enforce {
		limits = less(limits, reserved.Kube, reserved.System)
	}
	return limits
}

// checkReserved refuses reservations beyond what there is.
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
			return fmt.Errorf("more %s is reserved than the %s there is", name, amount.String())
		}
	}
	return nil
}

// evictionReserve is what the hard thresholds keep free of memory and of disk.
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
			return nil, fmt.Errorf("eviction threshold %s: %w", signal, err)
		}
		reserve[name] = amount
	}
	return reserve, nil
}

// threshold reads an amount, or a percentage of whole.
func threshold(text string, whole int64) (resource.Quantity, error) {
	percent, ok := strings.CutSuffix(text, "%")
	if !ok {
		return resource.ParseQuantity(text)
	}
	number, err := strconv.ParseFloat(percent, 32)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("percentage %q: %w", text, err)
	}
	// In single precision, as the reference kubelet has it, so that a swap of agents does
	// not change the node by some bytes.
	share := float32(number) / 100
	return *resource.NewQuantity(int64(float64(whole)*float64(share)), resource.BinarySI), nil
}

func isHugepages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}
