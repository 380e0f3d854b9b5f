package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A probe's command that overruns its time is ended, and leaves no process behind.
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
	awaitPod(t, in, "slow", usual, func(p *corev1.Pod) string {
		if p == nil || p.Status.Phase != corev1.PodRunning {
			return "the pod does not run"
		}
		return ""
	})
	// Several askings overrun; no more than the one that is under way may live.
	time.Sleep(8 * time.Second)
	out, err := node.Exec(t.Context(), "sh", "-c", "pgrep -f 'sleep 9876[5]' || true")
	if err != nil {
		t.Fatal(err)
	}
	if living := strings.Fields(out); len(living) > 1 {
		t.Errorf("%d processes of timed-out probes live on", len(living))
	}
	kubectl(t, "-n", in, "delete", "pod", "slow", "--wait=false")
}
