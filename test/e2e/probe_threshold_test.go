package e2e

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// recordUptime is a script that appends the host's uptime to /runs.
const recordUptime = "read up rest < /proc/uptime; echo $up >> /runs"

// TestSuccessThreshold: a pod is ready only after successThreshold successes of its readiness probe, which
// are one period apart. The reference may skip the period between the first and the second.
func TestSuccessThreshold(t *testing.T) {
	t.Parallel()
	const period, threshold = 2, 3
	node, in := steadyNode(t), namespace(t)
	p := sleeper("patient", node.Name())
	p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", recordUptime}}},
		PeriodSeconds:    period,
		TimeoutSeconds:   10,
		SuccessThreshold: threshold,
	}
	create(t, in, p)
	awaitPod(t, in, "patient", timeout, ready)

	out, err := execInPod(t.Context(), in, "patient", "cat", "/runs")
	if err != nil {
		t.Fatalf("read the times of the runs: %v: %s", err, out)
	}
	runs := strings.Fields(out)
	if len(runs) < threshold {
		t.Fatalf("the pod is ready after %d runs, want %d", len(runs), threshold)
	}
	if took := seconds(t, runs[threshold-1]) - seconds(t, runs[0]); took < period-0.5 {
		t.Errorf("the pod is ready %.2f s after the first success, period %d s, runs at %s", took, period, runs)
	}
}

func seconds(t *testing.T, text string) float64 {
	t.Helper()
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
