package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"swiftlet/test/bed"
)

// exclusive has CPUs and memory given to containers alone. The bed's machines have two CPUs,
// of which one is reserved: CPU 0. Beside the 100Mi of memory that is reserved, as much is
// kept by the threshold of eviction.
const exclusive = `
cpuManagerPolicy: static
cpuManagerReconcilePeriod: 1s
systemReserved: {cpu: 500m, memory: 100Mi}
memoryManagerPolicy: Static
reservedMemory: [{numaNode: 0, limits: {memory: 200Mi}}]
`

// bounded is a pod that is held to what it asks for.
func bounded(name, node, cpu string) *corev1.Pod {
	pod := sleeper(name, node)
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("32Mi")}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amounts, Limits: amounts}
	return pod
}

// TestExclusiveCPU gives a container a CPU of its own: nobody else runs on it, until it
// ends, whatever happens to the agent.
func TestExclusiveCPU(t *testing.T) {
	t.Parallel()
	if cpus, err := os.ReadFile("/sys/devices/system/cpu/online"); err != nil || strings.TrimSpace(string(cpus)) != "0-1" {
		t.Skipf("this test knows machines with CPUs 0-1, this one has %s (%v)", cpus, err)
	}
	node := configuredNode(t, "exclusive", exclusive)
	space := namespace(t)
	create(t, space, sleeper("shares", node.Name()))
	shares := awaitPod(t, space, "shares", usual, ready)
	awaitCPUs(t, shares, "0-1")

	create(t, space, bounded("alone", node.Name(), "1"))
	alone := awaitPod(t, space, "alone", usual, ready)
	awaitCPUs(t, alone, "1")
	awaitCPUs(t, shares, "0") // moved off
	create(t, space, sleeper("late", node.Name()))
	awaitCPUs(t, awaitPod(t, space, "late", usual, ready), "0")
	const quota = "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cat /sys/fs/cgroup/cpu.max"
	if bound := inside(t, alone, quota); !strings.HasPrefix(bound, "-1") && !strings.HasPrefix(bound, "max") {
		t.Errorf("quota of a container with a CPU of its own: %s", bound)
	}
	showsCPUs(t, node, space)

	// There is no other CPU to be had. The scheduler, which would know, is passed by.
	extra := bounded("refused", node.Name(), "1")
	extra.Spec.NodeName = node.Name()
	create(t, space, extra)
	compareEnd(t, endView(t, node, space), space, "refused", "exclusive-cpus")

	if err := node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet, Config: exclusive}); err != nil {
		t.Fatal(err)
	}
	create(t, space, sleeper("later", node.Name())) // the new agent has been through the old ones
	awaitCPUs(t, awaitPod(t, space, "later", usual, ready), "0")
	now := awaitPod(t, space, "alone", usual, ready)
	awaitCPUs(t, now, "1")
	same(t, alone, now)

	if err := client().CoreV1().Pods(space).Delete(t.Context(), "alone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, space, "alone", usual, gone)
	awaitCPUs(t, shares, "0-1")
	keepState(t, node)
}

// awaitCPUs waits until the pod's container runs on these CPUs.
func awaitCPUs(t *testing.T, pod *corev1.Pod, want string) {
	t.Helper()
	deadline := time.Now().Add(usual)
	for {
		got := processCPUs(t, pod)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s runs on CPU %s, want %s", pod.Name, got, want)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// processCPUs is what the kernel says of the pod's first process.
func processCPUs(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	status := inside(t, pod, "cat /proc/1/status")
	for line := range strings.Lines(status) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(list)
		}
	}
	t.Fatalf("no CPUs in %q", status)
	return ""
}

// inside is what a script says in the pod.
func inside(t *testing.T, pod *corev1.Pod, script string) string {
	t.Helper()
	out, err := execInPod(t.Context(), pod.Namespace, pod.Name, "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// showsCPUs: programs on the node see who has which CPU.
func showsCPUs(t *testing.T, node *bed.Box, space string) {
	t.Helper()
	client := resourcesv1.NewPodResourcesListerClient(socket(t, node, "pod-resources/kubelet.sock"))
	all, err := patiently(t, client.GetAllocatableResources, &resourcesv1.AllocatableResourcesRequest{})
	if err != nil || !slices.Equal(all.GetCpuIds(), []int64{1}) {
		t.Errorf("allocatable: %v, %v", all, err)
	}
	if memory := all.GetMemory(); len(memory) != 1 || memory[0].MemoryType != "memory" || memory[0].Topology.Nodes[0].ID != 0 {
		t.Errorf("allocatable memory: %v", memory)
	}
	for name, want := range map[string][]int64{"alone": {1}, "shares": nil} {
		one, err := patiently(t, client.Get, &resourcesv1.GetPodResourcesRequest{PodNamespace: space, PodName: name})
		if err != nil || !slices.Equal(one.GetPodResources().GetContainers()[0].GetCpuIds(), want) {
			t.Errorf("%s: %v, %v, want %v", name, one, err, want)
		}
		if memory := one.GetPodResources().GetContainers()[0].GetMemory(); (name == "alone") != (len(memory) == 1 && memory[0].Size == 32<<20) {
			t.Errorf("%s has memory %v", name, memory)
		}
	}
	shown := scrape(t, node)
	for name, want := range map[string]float64{
		"kubelet_cpu_manager_exclusive_cpu_allocation_count": 1, "kubelet_cpu_manager_shared_pool_size_millicores": 0,
		"kubelet_cpu_manager_pinning_requests_total": 1, "kubelet_cpu_manager_pinning_errors_total": 0,
		"kubelet_memory_manager_pinning_requests_total": 1, "kubelet_memory_manager_pinning_errors_total": 0,
	} {
		metric := shown[name].GetMetric()
		if len(metric) != 1 || metric[0].GetGauge().GetValue()+metric[0].GetCounter().GetValue() != want {
			t.Errorf("%s: %v, want %v", name, metric, want)
		}
	}
}

// keepState checks that the file that is left says that nobody has a CPU.
func keepState(t *testing.T, node *bed.Box) {
	t.Helper()
	raw, err := os.ReadFile(node.Path("/var/lib/kubelet/cpu_manager_state"))
	if err != nil || !strings.Contains(string(raw), `"defaultCpuSet":"0-1"`) && kubelet == bed.Ours {
		t.Errorf("state at the end: %s, %v", raw, err)
	}
}
