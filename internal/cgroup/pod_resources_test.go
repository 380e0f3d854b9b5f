package cgroup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

var defaults = Limits{CFSQuota: true, CFSPeriod: 100 * time.Millisecond, PodPIDs: -1}

// amounts returns a list of pairs of resource name and quantity.
func amounts(pairs ...string) v1.ResourceList {
	list := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func container(requests, limits v1.ResourceList) v1.Container {
	return v1.Container{Name: "c", Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func newPod(uid string, containers ...v1.Container) *v1.Pod {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: containers}}
	p.UID = types.UID(uid)
	return p
}

func with(p *v1.Pod, change func(*v1.Pod)) *v1.Pod {
	change(p)
	return p
}

// The first cases are the pods of the same names in the recording.
func TestPodAndSandboxResources(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	full := newPod("full", container(amounts("cpu", "100m", "memory", "32Mi"), amounts("cpu", "500m", "memory", "64Mi")))
	full.Spec.InitContainers = []v1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}}
	secure := amounts("cpu", "200m", "memory", "32Mi")
	noQuota, shortPeriod, pids := defaults, defaults, defaults
	noQuota.CFSQuota = false
	shortPeriod.CFSPeriod = 10 * time.Millisecond
	pids.PodPIDs = 1024

	for name, c := range map[string]struct {
		limits       Limits
		pod          *v1.Pod
		own, sandbox Resources
	}{
		"best_effort": {defaults, newPod("ok", container(nil, nil)),
			Resources{CPUShares: 2}, Resources{CPUShares: 2, CPUPeriod: 100000}},
		"memory_limit_only": {defaults, newPod("oom", container(amounts("memory", "16Mi"), amounts("memory", "16Mi"))),
			Resources{CPUShares: 2, Memory: 16 << 20}, Resources{CPUShares: 2, CPUPeriod: 100000, Memory: 16 << 20}},
		"limits_with_unlimited_sidecar": {defaults, full,
			Resources{CPUShares: 102},
			Resources{CPUShares: 102, CPUPeriod: 100000, CPUQuota: 50000, Memory: 64 << 20}},
		"guaranteed": {defaults, newPod("secure", container(secure, secure)),
			Resources{CPUShares: 204, CPUPeriod: 100000, CPUQuota: 20000, Memory: 32 << 20},
			Resources{CPUShares: 204, CPUPeriod: 100000, CPUQuota: 20000, Memory: 32 << 20}},
		"cfs_quota_off": {noQuota, newPod("secure", container(secure, secure)),
			Resources{CPUShares: 204, CPUPeriod: 100000, CPUQuota: -1, Memory: 32 << 20},
			Resources{CPUShares: 204, Memory: 32 << 20}},
		"short_cfs_period_gives_minimum_quota": {shortPeriod, newPod("p", container(amounts("cpu", "10m"), amounts("cpu", "10m"))),
			Resources{CPUShares: 10, CPUPeriod: 10000, CPUQuota: 1000},
			Resources{CPUShares: 10, CPUPeriod: 10000, CPUQuota: 1000}},
		"pod_pids_limit": {pids, newPod("p", container(nil, nil)),
			Resources{CPUShares: 2, PIDs: 1024}, Resources{CPUShares: 2, CPUPeriod: 100000}},
		"init_container_larger_than_regular": {defaults, with(
			newPod("p", container(amounts("cpu", "100m"), amounts("cpu", "200m"))),
			func(p *v1.Pod) {
				p.Spec.InitContainers = []v1.Container{container(amounts("cpu", "1"), amounts("cpu", "2"))}
			}),
			Resources{CPUShares: 1024, CPUPeriod: 100000, CPUQuota: 200000},
			Resources{CPUShares: 1024, CPUPeriod: 100000, CPUQuota: 200000}},
		"overhead_counts_for_pod_and_not_for_sandbox": {defaults, with(newPod("p", container(secure, secure)),
			func(p *v1.Pod) { p.Spec.Overhead = amounts("cpu", "50m", "memory", "8Mi") }),
			Resources{CPUShares: 256, CPUPeriod: 100000, CPUQuota: 25000, Memory: 40 << 20},
			Resources{CPUShares: 204, CPUPeriod: 100000, CPUQuota: 20000, Memory: 32 << 20}},
		"pod_level_limits_with_unlimited_containers": {defaults, with(newPod("p", container(nil, nil), container(nil, nil)),
			func(p *v1.Pod) {
				p.Spec.Resources = &v1.ResourceRequirements{
					Requests: amounts("cpu", "1", "memory", "64Mi"), Limits: amounts("cpu", "2", "memory", "128Mi")}
			}),
			Resources{CPUShares: 1024, CPUPeriod: 100000, CPUQuota: 200000, Memory: 128 << 20},
			Resources{CPUShares: 1024, CPUPeriod: 100000, CPUQuota: 200000, Memory: 128 << 20}},
		"huge_pages": {defaults, newPod("p", container(amounts("cpu", "1", "hugepages-2Mi", "4Mi"), amounts("hugepages-2Mi", "4Mi"))),
			Resources{CPUShares: 1024, Hugepages: map[int64]int64{2 << 20: 4 << 20}},
			Resources{CPUShares: 1024, CPUPeriod: 100000}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.own, c.limits.PodResources(c.pod)); diff != "" {
				t.Errorf("pod's cgroup (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.sandbox, c.limits.SandboxResources(c.pod)); diff != "" {
				t.Errorf("sandbox (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverheadResources(t *testing.T) {
	p := newPod("p")
	if diff := cmp.Diff(Resources{}, defaults.OverheadResources(p)); diff != "" {
		t.Error(diff)
	}
	p.Spec.Overhead = amounts("cpu", "250m", "memory", "1Mi")
	want := Resources{CPUShares: 256, CPUPeriod: 100000, CPUQuota: 25000, Memory: 1 << 20}
	if diff := cmp.Diff(want, defaults.OverheadResources(p)); diff != "" {
		t.Error(diff)
	}
}

func TestUnitConversions(t *testing.T) {
	for milli, want := range map[int64]uint64{0: 2, 1: 2, 2: 2, 10: 10, 100: 102, 1000: 1024, 1_000_000: MaxShares} {
		if got := Shares(milli); got != want {
			t.Errorf("Shares(%d) = %d, want %d", milli, got, want)
		}
	}
	for shares, want := range map[uint64]uint64{0: 0, 2: 1, 102: 4, 1024: 39, 2048: 79, MaxShares: 10000} {
		if got := sharesToWeight(shares); got != want {
			t.Errorf("weight(%d) = %d, want %d", shares, got, want)
		}
	}
	for size, want := range map[int64]string{64 << 10: "64KB", 2 << 20: "2MB", 1 << 30: "1GB", 16 << 30: "16GB"} {
		if got := pageSizeName(size); got != want {
			t.Errorf("pageSizeName(%d) = %s, want %s", size, got, want)
		}
	}
}
