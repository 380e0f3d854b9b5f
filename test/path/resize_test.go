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

// most is what a resize may ask for, in thousandths of a CPU.
const most = 500

func judge(p *v1.Pod, _ []*v1.Pod) *pod.Rejection {
	if p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() > most {
		return pod.Reject("OutOfcpu", "full")
	}
	return nil
}

// noUsage: nothing in this world uses memory.
type noUsage struct{}

func (noUsage) Memory(context.Context, *v1.Pod, *pod.Observed) (uint64, map[string]uint64, error) {
	return 0, nil, nil
}

// asks is a pod that requests this much CPU, in thousandths.
func asks(cpu int, policy string) []byte {
	return fmt.Appendf(nil, `
metadata: {name: web}
spec:
  containers:
  - {name: main, image: app:1, resources: {requests: {cpu: %dm}}, resizePolicy: [{resourceName: cpu, restartPolicy: %s}]}
`, cpu, policy)
}

// showResources tells how much CPU the pod was given, and the runtime and the kernel know of.
func (w *world) showResources() string {
	all := w.wishes.list()
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

func (w *world) apply(text []byte) {
	w.t.Helper()
	if err := w.wishes.apply(text); err != nil {
		w.t.Fatal(err)
	}
}

// Wherever in a resize the agent dies, the next one completes it.
func TestResizeCrashes(t *testing.T) {
	for policy, want := range map[string]string{
		"NotRequired":      "given 200m, container 204, pod 200, 0 restarts",
		"RestartContainer": "given 200m, container 204, pod 200, 1 restarts",
	} {
		t.Run(policy, func(t *testing.T) {
			eachCrash(t, func(w *world, die func() bool) bool {
				w.apply(asks(100, policy))
				w.pass(90 * time.Second)
				w.expect([]string{w.showResources()}, []string{"given 100m, container 102, pod 100, 0 restarts"})
				w.apply(asks(200, policy))
				died := die()
				w.pass(time.Minute)
				w.expect([]string{w.showResources()}, []string{want})
				return died
			})
		})
	}
}

// From the moment on that a pod has a container, it is known what the pod was given, even to
// an agent that finds the spec changed: wherever the one before it died.
func TestGivenIsKnownToTheNext(t *testing.T) {
	waits := 0
	for n := 1; ; n++ {
		died := false
		t.Run(fmt.Sprintf("died at call %d", n), func(t *testing.T) {
			inWorld(t, func(w *world) {
				c := &crash{in: n, acted: true, died: make(chan struct{})}
				w.crash = c
				w.apply(asks(100, "NotRequired"))
				select {
				case <-c.died:
					died = true
				case <-time.After(30 * time.Second):
					return
				}
				w.agent.parts.Wait()
				had := w.container("main") != nil
				w.mu.Lock()
				w.crash = nil
				w.mu.Unlock()
				w.apply(asks(900, "NotRequired"))
				w.start()
				w.pass(90 * time.Second)
				if had {
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
		t.Error("the agent never died with a container there")
	}
}
