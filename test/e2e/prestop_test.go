package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/images"
)

// TestPreStopHookHangs: preStop hooks use up the grace period. The container then gets two more seconds,
// in which its hook keeps running.
func TestPreStopHookHangs(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	for name, c := range map[string]struct {
		grace int64
		edit  func(*corev1.PodSpec)
		// end stops a pod that does not complete.
		end   func(t *testing.T, pod string)
		hooks int
		lives time.Duration // each hook
	}{
		"sidecars": {grace: 3, edit: asSidecars, hooks: 3, lives: 5 * time.Second},
		"deleted":  {grace: 30, end: deleteWithGrace(space, ptr.To[int64](2)), hooks: 1, lives: 4 * time.Second},
		"no-grace": {grace: 0, end: deleteWithGrace(space, nil), hooks: 1, lives: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			marker := space + "/" + name
			create(t, space, podWithHangingHook(name, node.Name(), marker, c.grace, c.edit))
			awaitPod(t, space, name, timeout, func(p *corev1.Pod) string {
				if p == nil || p.Status.Phase == corev1.PodPending {
					return "the pod is not running"
				}
				return ""
			})
			if c.end != nil {
				c.end(t, name)
			}
			compareHooks(t, awaitHooks(t, marker, c.hooks), c.lives)
			if c.end == nil { // the pod still exists, with its events
				awaitFailedHook(t, space, name)
			}
		})
	}
}

// podWithHangingHook returns a pod whose container ignores SIGTERM and has a preStop hook that never returns. The
// marker is part of the hook's command.
func podWithHangingHook(name, node, marker string, grace int64, edit func(*corev1.PodSpec)) *corev1.Pod {
	const forever = "trap '' TERM; while :; do sleep 1; done # "
	p := sleeper(name, node)
	p.Spec.TerminationGracePeriodSeconds = &grace
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	c := &p.Spec.Containers[0]
	c.Command = []string{"sh", "-c", forever}
	c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", forever + marker}}}}
	if edit != nil {
		edit(&p.Spec)
	}
	return p
}

// asSidecars replaces the container by three sidecars and a main container that completes.
func asSidecars(spec *corev1.PodSpec) {
	for _, name := range []string{"first", "second", "third"} {
		c := spec.Containers[0].DeepCopy()
		c.Name, c.RestartPolicy = name, ptr.To(corev1.ContainerRestartPolicyAlways)
		spec.InitContainers = append(spec.InitContainers, *c)
	}
	spec.Containers = []corev1.Container{{Name: "main", Image: images.Busybox, Command: []string{"sleep", "1"}}}
}

func deleteWithGrace(space string, grace *int64) func(t *testing.T, pod string) {
	return func(t *testing.T, pod string) {
		t.Helper()
		if err := client().CoreV1().Pods(space).Delete(t.Context(), pod, metav1.DeleteOptions{GracePeriodSeconds: grace}); err != nil {
			t.Fatal(err)
		}
	}
}

// hookRun is the run of a hook, and the timeout with which its container was stopped.
type hookRun struct {
	took    time.Duration
	timeout string // of StopContainer, in seconds
}

// awaitHooks waits until so many hooks with the marker have ended and their containers have stopped.
func awaitHooks(t *testing.T, marker string, want int) map[string]hookRun {
	t.Helper()
	for deadline := time.Now().Add(2 * timeout); ; time.Sleep(200 * time.Millisecond) {
		runs := hookRuns(t, marker)
		if len(runs) == want {
			return runs
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d hooks and their containers have ended, want %d", len(runs), want)
		}
	}
}

// hookRuns returns the hooks that have ended and whose containers have stopped, by container.
func hookRuns(t *testing.T, marker string) map[string]hookRun {
	t.Helper()
	text, err := os.ReadFile(steadyCalls())
	if err != nil {
		t.Fatal(err)
	}
	took, timeouts := map[string]time.Duration{}, map[string]string{}
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // incomplete line
		}
		var c call
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		id, _ := c.Req["containerId"].(string)
		switch {
		case c.Method == "StopContainer":
			timeouts[id] = fmt.Sprint(c.Req["timeout"])
		case c.Method == "ExecSync" && strings.Contains(fmt.Sprint(c.Req["cmd"]), marker):
			took[id] = time.Duration(c.Millis * float64(time.Millisecond))
		}
	}
	runs := map[string]hookRun{}
	for id, d := range took {
		if timeout, stopped := timeouts[id]; stopped {
			runs[id] = hookRun{d, timeout}
		}
	}
	return runs
}

func compareHooks(t *testing.T, runs map[string]hookRun, lives time.Duration) {
	t.Helper()
	for id, run := range runs {
		t.Logf("hook of container %s: %+v", id, run)
		if run.took < lives-200*time.Millisecond {
			t.Errorf("hook of container %s ran for %v, want at least %v", id, run.took, lives)
		}
		if run.timeout != "2" {
			t.Errorf("container %s was stopped with a timeout of %s s, want 2", id, run.timeout)
		}
	}
}

// awaitFailedHook waits for the event about the killed hook.
func awaitFailedHook(t *testing.T, space, pod string) {
	t.Helper()
	options := metav1.ListOptions{FieldSelector: "reason=FailedPreStopHook,involvedObject.name=" + pod}
	for deadline := time.Now().Add(timeout); ; time.Sleep(200 * time.Millisecond) {
		list, err := client().CoreV1().Events(space).List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("there is no event FailedPreStopHook")
		}
	}
}
