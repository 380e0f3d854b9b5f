package e2e

import (
	"fmt"
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/test/bed"
)

// amounts are a container's resources: CPU in millicores, memory in MiB.
type amounts struct{ request, limit, memory int64 }

func (a amounts) requirements() corev1.ResourceRequirements {
	cpu := func(milli int64) resource.Quantity { return *resource.NewMilliQuantity(milli, resource.DecimalSI) }
	memory := *resource.NewQuantity(a.memory<<20, resource.BinarySI)
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: cpu(a.request), corev1.ResourceMemory: memory},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: cpu(a.limit), corev1.ResourceMemory: memory},
	}
}

// resizable returns a pod with these resources.
func resizable(name, node string, a amounts) *corev1.Pod {
	pod := sleeper(name, node)
	pod.Spec.Containers[0].Resources = a.requirements()
	return pod
}

// resize requests other resources for the pod's container.
func resize(t *testing.T, space, name string, a amounts) *corev1.Pod {
	t.Helper()
	r := a.requirements()
	patch := fmt.Sprintf(`{"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": %q, "memory": %q}, "limits": {"cpu": %q, "memory": %q}}}]}}`,
		r.Requests.Cpu(), r.Requests.Memory(), r.Limits.Cpu(), r.Limits.Memory())
	pod, err := client().CoreV1().Pods(space).Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize")
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// resized checks that a resize is complete.
func resized(requested *corev1.Pod) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string {
		switch c := resizeCondition(p); {
		case p.Status.ObservedGeneration < requested.Generation:
			return fmt.Sprintf("observed generation is %d, want %d", p.Status.ObservedGeneration, requested.Generation)
		case c != nil:
			return fmt.Sprintf("%s %s: %s", c.Type, c.Reason, c.Message)
		}
		want, status := requested.Spec.Containers[0].Resources, p.Status.ContainerStatuses[0]
		for _, r := range []struct {
			what      string
			have, exp corev1.ResourceList
		}{
			{"requests", status.Resources.Requests, want.Requests}, {"limits", status.Resources.Limits, want.Limits},
			{"allocated", status.AllocatedResources, want.Requests},
		} {
			for name, amount := range r.exp {
				if have := r.have[name]; have.Cmp(amount) != 0 {
					return fmt.Sprintf("%s of %s are %s, want %s", r.what, name, have.String(), amount.String())
				}
			}
		}
		return ready(p)
	}
}

func resizeCondition(p *corev1.Pod) *corev1.PodCondition {
	for i, c := range p.Status.Conditions {
		if c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// TestResize resizes a running pod twenty times, up and down. Each time the cgroups of container and pod have
// the new values, and no container restarts.
func TestResize(t *testing.T) {
	t.Parallel()
	node, space := steadyNode(t), namespace(t)
	create(t, space, resizable("resized", node.Name(), amounts{100, 200, 64}))
	before := awaitPod(t, space, "resized", timeout, ready)

	steps := []amounts{
		{200, 300, 64}, {100, 200, 96}, {150, 400, 128}, {50, 100, 48}, {100, 150, 64},
	}
	for i := range 20 {
		to := steps[i%len(steps)]
		after := awaitPod(t, space, "resized", timeout, resized(resize(t, space, "resized", to)))
		checkSameContainers(t, before, after)
		checkCgroups(t, node, before, to)
		if t.Failed() {
			t.Fatalf("resize %d", i)
		}
	}
}

// checkCgroups checks the cgroups of a pod and its container.
func checkCgroups(t *testing.T, node *bed.Box, p *corev1.Pod, want amounts) {
	t.Helper()
	kernel := fmt.Sprintf("%d %d %d", want.request*1024/1000, want.limit*100, want.memory<<20)
	for of, dir := range cgroupsOf(t, node, p) {
		if now := readCgroup(t, node, dir); now != kernel {
			t.Errorf("cgroup of the %s has shares, quota and memory limit %s, want %s", of, now, kernel)
		}
	}
}

// cgroupsOf finds a pod's and its container's cgroup, below the root of each controller.
func cgroupsOf(t *testing.T, node *bed.Box, p *corev1.Pod) map[string]string {
	t.Helper()
	const root = "/sys/fs/cgroup/memory"
	found, err := node.Exec(t.Context(), "find", root, "-type", "d", "-name", "pod"+string(p.UID))
	if err != nil || strings.TrimSpace(found) == "" {
		t.Fatalf("find the pod's cgroup: %v", err)
	}
	dir := strings.TrimPrefix(strings.TrimSpace(found), root)
	_, id, _ := strings.Cut(p.Status.ContainerStatuses[0].ContainerID, "://")
	return map[string]string{"pod": dir, "container": path.Join(dir, id)}
}

// readCgroup reads a cgroup's CPU shares, CPU quota and memory limit.
func readCgroup(t *testing.T, node *bed.Box, dir string) string {
	t.Helper()
	text, err := node.Exec(t.Context(), "cat", "/sys/fs/cgroup/cpu"+dir+"/cpu.shares", "/sys/fs/cgroup/cpu"+dir+"/cpu.cfs_quota_us",
		"/sys/fs/cgroup/memory"+dir+"/memory.limit_in_bytes")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(text), " ")
}

// TestResizeWaits: a resize that does not fit is deferred, also across a restart of the agent, until it fits.
// A memory limit is not lowered below the usage.
func TestResizeWaits(t *testing.T) {
	t.Parallel()
	space := namespace(t)
	node := ownNode(t, uniqueNodeName("resizing", space))
	pod := resizable("waiting", node.Name(), amounts{100, 200, 64})
	pod.Spec.Containers[0].Command[2] = "dd if=/dev/zero of=/dev/shm/held bs=1M count=20 && touch /dev/shm/done; " + pod.Spec.Containers[0].Command[2]
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"cat", "/dev/shm/done"}}},
		PeriodSeconds: 1,
	}
	create(t, space, pod)
	before := awaitPod(t, space, "waiting", timeout, ready)

	waits := func(kind corev1.PodConditionType, reason, message string) func(*corev1.Pod) string {
		return func(p *corev1.Pod) string {
			c := resizeCondition(p)
			if c == nil || c.Type != kind || c.Reason != reason || !strings.HasPrefix(c.Message, message) || c.ObservedGeneration != p.Generation {
				return fmt.Sprintf("resize condition for generation %d is %v", p.Generation, c)
			}
			return ready(p)
		}
	}
	machine, err := client().CoreV1().Nodes().Get(t.Context(), node.Name(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := machine.Status.Allocatable.Cpu().MilliValue()
	create(t, space, resizable("neighbour", node.Name(), amounts{all / 2, all, 32}))
	awaitPod(t, space, "neighbour", timeout, ready)
	requested := resize(t, space, "waiting", amounts{all * 3 / 4, all, 65})
	deferred := waits(corev1.PodResizePending, corev1.PodReasonDeferred,
		fmt.Sprintf("Node didn't have enough resource: cpu, requested: %d, used: %d, capacity: %d", all*3/4, all/2, all))
	checkSameContainers(t, before, awaitPod(t, space, "waiting", timeout, deferred))
	kill(t, node)
	start(t, node, kubelet)
	create(t, space, sleeper("later", node.Name()))
	awaitPod(t, space, "later", timeout, ready)
	checkSameContainers(t, before, awaitPod(t, space, "waiting", timeout, deferred))
	deletePod(t, space, "neighbour")
	checkSameContainers(t, before, awaitPod(t, space, "waiting", timeout, resized(requested)))

	resize(t, space, "waiting", amounts{100, 200, 8})
	checkSameContainers(t, before, awaitPod(t, space, "waiting", timeout,
		waits(corev1.PodResizeInProgress, corev1.PodReasonError, "cannot decrease memory limits: ")))
	checkSameContainers(t, before, awaitPod(t, space, "waiting", timeout, resized(resize(t, space, "waiting", amounts{150, 250, 72}))))
}
