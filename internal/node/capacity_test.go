package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func amounts(pairs ...string) v1.ResourceList {
	list := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func text(list v1.ResourceList) map[string]string {
	all := map[string]string{}
	for name, amount := range list {
		all[string(name)] = amount.String()
	}
	return all
}

// recorded is the machine that the reference kubelet's Node was recorded on, recordedDisk the
// size of its disk.
var recorded = Machine{
	CPUs: 2, MemoryBytes: 24682416 << 10, Hugepages: map[int64]int64{2 << 20: 0, 1 << 30: 0},
	MaxPIDs: 32768, MachineID: "3d12", SystemUUID: "3d12", BootID: "5c05", Kernel: "6.18.44",
	OSImage: "Debian GNU/Linux 12 (bookworm)",
}

const recordedDisk = 270553174016

var defaultEviction = map[string]string{
	"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%", "nodefs.inodesFree": "5%",
}

func TestCapacityMatchesRecording(t *testing.T) {
	capacity := capacityOf(recorded, 250, 0, recordedDisk)
	want := map[string]string{
		"cpu": "2", "ephemeral-storage": "270553174016", "hugepages-1Gi": "0", "hugepages-2Mi": "0",
		"memory": "24682416Ki", "pods": "250",
	}
	if diff := cmp.Diff(want, text(capacity)); diff != "" {
		t.Error(diff)
	}
	allocatable, err := allocatableOf(capacity, Reserved{EvictionHard: defaultEviction})
	if err != nil {
		t.Fatal(err)
	}
	want["memory"], want["ephemeral-storage"] = "24580016Ki", "267847642337"
	if diff := cmp.Diff(want, text(allocatable)); diff != "" {
		t.Error(diff)
	}
}

func TestAllocatable(t *testing.T) {
	hugeMachine := Machine{CPUs: 4, MemoryBytes: 8 << 30, Hugepages: map[int64]int64{2 << 20: 1 << 30}, MaxPIDs: 1000}
	reserved := Reserved{
		Kube: amounts("cpu", "500m", "memory", "1Gi", "pid", "100"), System: amounts("cpu", "250m", "memory", "500Mi", "ephemeral-storage", "1Gi"),
		EvictionHard: map[string]string{"memory.available": "10%"},
	}
	capacity := capacityOf(hugeMachine, 110, 10, 100<<30)
	allocatable, err := allocatableOf(capacity, reserved)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"cpu": "3250m", "memory": "5059169472", // 8Gi - 1Gi - 500Mi - 10% - 1Gi of huge pages
		"pods": "40", "hugepages-2Mi": "1Gi", "ephemeral-storage": "106300440576",
	}
	if diff := cmp.Diff(want, text(allocatable)); diff != "" {
		t.Error(diff)
	}
	want = map[string]string{"cpu": "3250m", "memory": "6668Mi", "pid": "900", "hugepages-2Mi": "1Gi"}
	if diff := cmp.Diff(want, text(cgroupLimits(hugeMachine, capacity, reserved, true))); diff != "" {
		t.Errorf("enforced: %s", diff)
	}
	want = map[string]string{"cpu": "4", "memory": "8Gi", "pid": "1k", "hugepages-2Mi": "1Gi"}
	if diff := cmp.Diff(want, text(cgroupLimits(hugeMachine, capacity, reserved, false))); diff != "" {
		t.Errorf("not enforced: %s", diff)
	}
}

func TestReservedExceedsCapacity(t *testing.T) {
	capacity := capacityOf(recorded, 110, 0, recordedDisk)
	for name, r := range map[string]Reserved{
		"cpu_reserved_exceeds_capacity":       {Kube: amounts("cpu", "1500m"), System: amounts("cpu", "600m")},
		"eviction_threshold_exceeds_capacity": {EvictionHard: map[string]string{"memory.available": "30Gi"}},
		"invalid_percentage":                  {EvictionHard: map[string]string{"memory.available": "1x%"}},
		"invalid_quantity":                    {EvictionHard: map[string]string{"nodefs.available": "much"}},
	} {
		if checkReserved(capacity, r) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := checkReserved(capacity, Reserved{Kube: amounts("cpu", "2")}); err != nil {
		t.Error(err)
	}
}
