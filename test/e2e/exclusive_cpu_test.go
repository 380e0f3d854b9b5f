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

// exclusiveConfig enables exclusive CPUs and memory. The test needs two CPUs, of which CPU 0 is reserved.
// reservedMemory is the 100Mi of systemReserved plus 100Mi of the eviction threshold.
const exclusiveConfig = `
cpuManagerPolicy: static
cpuManagerReconcilePeriod: 1s
systemReserved: {cpu: 500m, memory: 100Mi}
memoryManagerPolicy: Static
reservedMemory: [{numaNode: 0, limits: {memory: 200Mi}}]
`

// guaranteedPod is a Guaranteed pod.
func guaranteedPod(name, node, cpu string) *corev1.Pod {
	pod := sleeper(name, node)
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("32Mi")}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amounts, Limits: amounts}
	return pod
}

// TestExclusiveCPU gives a container an exclusive CPU: no other container runs on it until the pod is
// deleted, also after a restart of the agent.
func TestExclusiveCPU(t *testing.T) {
	t.Parallel()
	if cpus, err := os.ReadFile("/sys/devices/system/cpu/online"); err != nil || strings.TrimSpace(string(cpus)) != "0-1" {
		t.Skipf("needs a machine with CPUs 0-1, this one has %s (%v)", cpus, err)
	}
	node := configuredNode(t, "exclusive", exclusiveConfig)
	space := namespace(t)
	create(t, space, sleeper("shares", node.Name()))
	shares := awaitPod(t, space, "shares", timeout, ready)
	awaitCPUs(t, shares, "0-1")

	create(t, space, guaranteedPod("alone", node.Name(), "1"))
	alone := awaitPod(t, space, "alone", timeout, ready)
	awaitCPUs(t, alone, "1")
	awaitCPUs(t, shares, "0") // moved off CPU 1
	create(t, space, sleeper("late", node.Name()))
	awaitCPUs(t, awaitPod(t, space, "late", timeout, ready), "0")
	const quota = "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cat /sys/fs/cgroup/cpu.max"
	if bound := inside(t, alone, quota); !strings.HasPrefix(bound, "-1") && !strings.HasPrefix(bound, "max") {
		t.Errorf("quota of a container with an exclusive CPU: %s", bound)
	}
	checkReportedCPUs(t, node, space)

	// There is no free CPU. The pod bypasses the scheduler, which would not place it here.
	extra := guaranteedPod("refused", node.Name(), "1")
	extra.Spec.NodeName = node.Name()
	create(t, space, extra)
	compareFinalState(t, finalStateView(t, node, space), space, "refused", "exclusive-cpus")

	if err := node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet, Config: exclusiveConfig}); err != nil {
		t.Fatal(err)
	}
	create(t, space, sleeper("later", node.Name())) // when it is ready, the new agent has synced the older pods
	awaitCPUs(t, awaitPod(t, space, "later", timeout, ready), "0")
	now := awaitPod(t, space, "alone", timeout, ready)
	awaitCPUs(t, now, "1")
	checkSameContainers(t, alone, now)

	if err := client().CoreV1().Pods(space).Delete(t.Context(), "alone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, space, "alone", timeout, gone)
	awaitCPUs(t, shares, "0-1")
	checkStateFile(t, node)
}

// awaitCPUs waits until the pod's container runs on these CPUs.
func awaitCPUs(t *testing.T, pod *corev1.Pod, want string) {
	t.Helper()
	deadline := time.Now().Add(timeout)
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

// processCPUs returns the allowed CPUs of the pod's first process.
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

// inside returns the output of a script in the pod.
func inside(t *testing.T, pod *corev1.Pod, script string) string {
	t.Helper()
	out, err := execInPod(t.Context(), pod.Namespace, pod.Name, "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkReportedCPUs checks the exclusive CPUs in the PodResources API and in the metrics.
func checkReportedCPUs(t *testing.T, node *bed.Box, space string) {
	t.Helper()
	client := resourcesv1.NewPodResourcesListerClient(socket(t, node, "pod-resources/kubelet.sock"))
	all, err := retryRateLimited(t, client.GetAllocatableResources, &resourcesv1.AllocatableResourcesRequest{})
	if err != nil || !slices.Equal(all.GetCpuIds(), []int64{1}) {
		t.Errorf("allocatable: %v, %v", all, err)
	}
	if memory := all.GetMemory(); len(memory) != 1 || memory[0].MemoryType != "memory" || memory[0].Topology.Nodes[0].ID != 0 {
		t.Errorf("allocatable memory: %v", memory)
	}
	for name, want := range map[string][]int64{"alone": {1}, "shares": nil} {
		one, err := retryRateLimited(t, client.Get, &resourcesv1.GetPodResourcesRequest{PodNamespace: space, PodName: name})
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

// checkStateFile checks that the state file has no exclusive CPUs at the end.
func checkStateFile(t *testing.T, node *bed.Box) {
	t.Helper()
	raw, err := os.ReadFile(node.Path("/var/lib/kubelet/cpu_manager_state"))
	if err != nil || !strings.Contains(string(raw), `"defaultCpuSet":"0-1"`) && kubelet == bed.Ours {
		t.Errorf("state at the end: %s, %v", raw, err)
	}
}
