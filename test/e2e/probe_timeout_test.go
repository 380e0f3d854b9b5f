package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestProbeTimeout: a probe command that times out is killed and leaves no process.
func TestProbeTimeout(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	in := namespace(t)
	p := sleeper("slow", node.Name())
	p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sleep", "98765"}}},
		PeriodSeconds:  1,
		TimeoutSeconds: 1,
	}
	create(t, in, p)
	awaitPod(t, in, "slow", timeout, func(p *corev1.Pod) string {
		if p == nil || p.Status.Phase != corev1.PodRunning {
			return "the pod is not running"
		}
		return ""
	})
	// Several runs time out. At most one process, of the current run, may exist.
	time.Sleep(8 * time.Second)
	out, err := node.Exec(t.Context(), "sh", "-c", "pgrep -f 'sleep 9876[5]' || true")
	if err != nil {
		t.Fatal(err)
	}
	if living := strings.Fields(out); len(living) > 1 {
		t.Errorf("%d processes of timed-out probes still exist", len(living))
	}
	kubectl(t, "-n", in, "delete", "pod", "slow", "--wait=false")
}
