package path

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// maxCPU is the largest CPU request that a resize may have, in millicores.
const maxCPU = 500

func checkResize(p *v1.Pod, _ []*v1.Pod) *pod.Rejection {
	if p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() > maxCPU {
		return pod.Reject("OutOfcpu", "full")
	}
	return nil
}

// noMemoryUsage reports that no pod uses memory.
type noMemoryUsage struct{}

func (noMemoryUsage) Memory(context.Context, *v1.Pod, *pod.Observed) (uint64, map[string]uint64, error) {
	return 0, nil, nil
}

// podRequesting returns a pod with a CPU request in millicores.
func podRequesting(cpu int, policy string) []byte {
	return fmt.Appendf(nil, `
metadata: {name: web}
spec:
  containers:
  - {name: main, image: app:1, resources: {requests: {cpu: %dm}}, resizePolicy: [{resourceName: cpu, restartPolicy: %s}]}
`, cpu, policy)
}

// showResources returns the pod's allocated CPU, and that of its container and cgroup.
func (w *testNode) showResources() string {
	all := w.store.list()
	if len(all) != 1 || len(all[0].Status.ContainerStatuses) != 1 || w.container("main") == nil {
		return "nothing"
	}
	status := all[0].Status.ContainerStatuses[0]
	words := []string{fmt.Sprintf("given %s, container %d, pod %d, %d restarts", status.AllocatedResources.Cpu(),
		w.container("main").Resources.GetLinux().GetCpuShares(), w.cgroups.of(all[0].UID), status.RestartCount)}
	for _, c := range all[0].Status.Conditions {
		if c.Type == v1.PodResizePending || c.Type == v1.PodResizeInProgress {
			words = append(words, fmt.Sprintf("%s %s %s", c.Type, c.Reason, c.Message))
		}
	}
	return strings.Join(words, ", ")
}

func (w *testNode) apply(text []byte) {
	w.t.Helper()
	if err := w.store.apply(text); err != nil {
		w.t.Fatal(err)
	}
}

// Wherever the agent crashes during a resize, the next run completes it.
func TestResizeSurvivesCrash(t *testing.T) {
	for policy, want := range map[string]string{
		"NotRequired":      "given 200m, container 204, pod 200, 0 restarts",
		"RestartContainer": "given 200m, container 204, pod 200, 1 restarts",
	} {
		t.Run(policy, func(t *testing.T) {
			eachCrash(t, func(w *testNode, die func() bool) bool {
				w.apply(podRequesting(100, policy))
				w.pass(90 * time.Second)
				w.expect([]string{w.showResources()}, []string{"given 100m, container 102, pod 100, 0 restarts"})
				w.apply(podRequesting(200, policy))
				died := die()
				w.pass(time.Minute)
				w.expect([]string{w.showResources()}, []string{want})
				return died
			})
		})
	}
}

// Once a pod has a container, its allocation is stored. It survives a crash at any call, even if the
// spec changes before the next run.
func TestAllocationSurvivesCrash(t *testing.T) {
	waits := 0
	for n := 1; ; n++ {
		died := false
		t.Run(fmt.Sprintf("crash at call %d", n), func(t *testing.T) {
			onTestNode(t, func(w *testNode) {
				c := &crash{callsLeft: n, executed: true, died: make(chan struct{})}
				w.crash = c
				w.apply(podRequesting(100, "NotRequired"))
				select {
				case <-c.died:
					died = true
				case <-time.After(30 * time.Second):
					return
				}
				w.agent.parts.Wait()
				hadContainer := w.container("main") != nil
				w.mu.Lock()
				w.crash = nil
				w.mu.Unlock()
				w.apply(podRequesting(900, "NotRequired"))
				w.start()
				w.pass(90 * time.Second)
				if hadContainer {
					waits++
					w.expect([]string{w.showResources()}, []string{"given 100m, container 102, pod 100, 0 restarts, PodResizePending Deferred full"})
				}
			})
		})
		if !died {
			break
		}
	}
	if waits == 0 && !t.Failed() {
		t.Error("no crash happened after a container was created")
	}
}
