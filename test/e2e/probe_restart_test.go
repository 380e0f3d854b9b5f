package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

// probeRestarts is the size of the test. SWIFTLET_PROBE_RESTARTS=5 is 150 pods and five restarts; the
// default is smaller. On two cores the reference passes only the default size: it does not limit
// parallel probes, and with 150 pods many time out.
type probeRestarts struct{ pods, restarts int }

func probeRestartsSize(t *testing.T) probeRestarts {
	t.Helper()
	text := os.Getenv("SWIFTLET_PROBE_RESTARTS")
	if text == "" {
		return probeRestarts{pods: 40, restarts: 2}
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return probeRestarts{pods: 150, restarts: n}
}

const (
	probeRestartPeriod = 5
	probeRuns          = "/var/lib/probe-runs" // each run of a probe appends a line to a file there
)

// TestProbesAcrossRestarts restarts the agent with many exec probes on the node. The first and second runs
// after that are spread over the period, and none fails.
func TestProbesAcrossRestarts(t *testing.T) { // not parallel: it measures time
	size := probeRestartsSize(t)
	node, in := ownNode(t, "probed"), namespace(t)
	if out, err := node.Exec(t.Context(), "mkdir", "-p", probeRuns); err != nil {
		t.Fatalf("create %s: %v: %s", probeRuns, err, out)
	}
	for i := range size.pods {
		create(t, in, livenessRecorder(fmt.Sprintf("p%d", i), node.Name()))
	}
	eventually(t, 3*time.Minute, func() string { return notReady(t, in) })

	before := probeFailures(t, in) // commands may time out while so many pods start
	for range size.restarts {
		if err := node.KillKubelet(); err != nil {
			t.Fatal(err)
		}
		since := uptime(t)
		if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet}); err != nil {
			t.Fatal(err)
		}
		var rounds [2][]float64
		eventually(t, time.Minute, func() (missing string) {
			rounds, missing = probeRounds(t, node, since, size.pods)
			return missing
		})
		for i, times := range rounds {
			slices.Sort(times)
			// Without the first and the last tenth, to ignore outliers.
			span := times[len(times)*9/10] - times[len(times)/10]
			t.Logf("run %d after the restart: %d probes within %.2f s, the first after %.2f s", i+1, len(times), span, times[0]-since)
			if span < probeRestartPeriod/2. {
				t.Errorf("run %d after the restart: most of %d probes ran within %.2f s, period %d s", i+1, len(times), span, probeRestartPeriod)
			}
		}
	}
	if after := probeFailures(t, in); !maps.Equal(before, after) {
		t.Errorf("failed probes and restarts: %v before the restarts of the agent, %v after", before, after)
	}
}

// livenessRecorder returns a pod whose liveness probe records its runs. One failure restarts the
// container.
func livenessRecorder(name, node string) *corev1.Pod {
	p := addVolume(sleeper(name, node), "runs", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: probeRuns}}, "")
	c := &p.Spec.Containers[0]
	script := fmt.Sprintf("read up rest < /proc/uptime; echo %s $up >> %s/runs", name, c.VolumeMounts[0].MountPath)
	c.LivenessProbe = &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", script}}},
		PeriodSeconds:    probeRestartPeriod,
		TimeoutSeconds:   1,
		FailureThreshold: 1,
	}
	return p
}

// notReady returns how many pods are not ready, as text.
func notReady(t *testing.T, in string) string {
	t.Helper()
	list, err := client().CoreV1().Pods(in).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	missing := 0
	for i := range list.Items {
		if ready(&list.Items[i]) != "" {
			missing++
		}
	}
	if missing == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d pods are not ready", missing, len(list.Items))
}

func uptime(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	return seconds(t, strings.Fields(string(text))[0])
}

// probeRounds returns the times of every pod's first and second run after since.
func probeRounds(t *testing.T, node *bed.Box, since float64, pods int) (rounds [2][]float64, missing string) {
	t.Helper()
	out, err := node.Exec(t.Context(), "cat", probeRuns+"/runs")
	if err != nil {
		return rounds, fmt.Sprintf("read the runs: %v: %s", err, out)
	}
	count := map[string]int{}
	for line := range strings.Lines(out) {
		name, text, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			t.Fatalf("bad line: %q", line)
		}
		at := seconds(t, text)
		if at <= since {
			continue
		}
		if n := count[name]; n < len(rounds) {
			rounds[n] = append(rounds[n], at)
		}
		count[name]++
	}
	if n := len(rounds[1]); n < pods {
		missing = fmt.Sprintf("%d of %d probes ran twice", n, pods)
	}
	return rounds, missing
}

// probeFailures counts failed probes, by event, and restarts of each pod.
func probeFailures(t *testing.T, in string) map[string]int32 {
	t.Helper()
	failures := map[string]int32{}
	events, err := client().CoreV1().Events(in).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Unhealthy"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		failures[e.InvolvedObject.Name+": "+e.Message] += max(e.Count, 1)
	}
	list, err := client().CoreV1().Pods(in).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		if n := p.Status.ContainerStatuses[0].RestartCount; n > 0 {
			failures[p.Name+": restarts"] = n
		}
	}
	return failures
}
