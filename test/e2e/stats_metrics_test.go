package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/test/bed"
)

// scrapeNode scrapes a metrics endpoint of a node.
func scrapeNode(t *testing.T, node *bed.Box, path string) map[string]*dto.MetricFamily {
	t.Helper()
	code, body := requestNode(t, node, "GET", path)
	if code != 200 {
		t.Fatalf("%s: %d %s", path, code, body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return families
}

// labelsOf returns the label names of a family.
func labelsOf(f *dto.MetricFamily) []string {
	names := map[string]bool{}
	for _, m := range f.Metric {
		for _, l := range m.Label {
			names[l.GetName()] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// seriesValue returns the value of the series with these labels.
func seriesValue(t *testing.T, f *dto.MetricFamily, labels map[string]string) float64 {
	t.Helper()
metrics:
	for _, m := range f.GetMetric() {
		have := map[string]string{}
		for _, l := range m.Label {
			have[l.GetName()] = l.GetValue()
		}
		for name, value := range labels {
			if have[name] != value {
				continue metrics
			}
		}
		return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	t.Errorf("%s has no series with %v", f.GetName(), labels)
	return 0
}

// omittedMetrics are metrics of the reference that our kubelet does not have; docs/metrics.md has the reasons.
var omittedMetrics = map[string]bool{"machine_nvm_avg_power_budget_watts": true, "machine_nvm_capacity": true}

// TestMetricNames compares every metric, with its type and label names, with the recording of the reference.
func TestMetricNames(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	startPod(t, namespace(t), measured("measured", node.Name()))
	for file, path := range map[string]string{
		"metrics-cadvisor.tsv": "/metrics/cadvisor",
		"metrics-resource.tsv": "/metrics/resource",
		"metrics-probes.tsv":   "/metrics/probes",
	} {
		compareScrape(t, node, path, file)
	}
}

// compareScrape compares the metrics of an endpoint, with their types and label names, with a recording.
func compareScrape(t *testing.T, node *bed.Box, path, file string) {
	t.Helper()
	families := scrapeNode(t, node, path)
	for line := range strings.Lines(string(testdata(t, file))) {
		cells := strings.Split(strings.TrimRight(line, "\n"), "\t")
		name, kind, labels := cells[0], cells[1], cells[2]
		f := families[name]
		switch {
		case f == nil && omittedMetrics[name] && kubelet == bed.Ours:
		case f == nil:
			t.Errorf("%s lacks %s", path, name)
		case strings.ToLower(f.GetType().String()) != kind:
			t.Errorf("%s: %s is a %s, want a %s", path, name, f.GetType(), kind)
		case strings.Join(labelsOf(f), ",") != labels:
			t.Errorf("%s: %s has the labels %v, want %s", path, name, labelsOf(f), labels)
		}
		delete(families, name)
	}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		// The kernel of the recording had no pressure stall information.
		if !strings.HasPrefix(name, "container_pressure_") {
			t.Errorf("%s has %s, which the reference does not", path, name)
		}
	}
}

// measured returns a pod with limits, volumes and a probe, so that it has all statistics.
func measured(name, node string) *corev1.Pod {
	pod := scripted(name, node, "head -c 3000000 /dev/zero > /scratch/file; echo begun; "+exitOnTerm)
	c := &pod.Spec.Containers[0]
	c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1m")} // room for the other tests
	c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("64Mi")}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}, {Name: "host", MountPath: "/host"}}
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
		Exec: &corev1.ExecAction{Command: []string{"test", "-s", "/scratch/file"}}}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}}},
	}
	return pod
}

// TestProbeMetrics checks that probes are counted, and that the series are removed with the pod.
func TestProbeMetrics(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	pod := startPod(t, space, measured("probed", node.Name()))
	series := map[string]string{"container": "c", "namespace": space, "pod": "probed", "probe_type": "Readiness"}
	families := scrapeNode(t, node, "/metrics/probes")
	if n := seriesValue(t, families["prober_probe_duration_seconds"], series); n < 1 {
		t.Errorf("%v probes of a ready pod", n)
	}
	series["result"], series["pod_uid"] = "successful", string(pod.UID)
	if n := seriesValue(t, families["prober_probe_total"], series); n < 1 {
		t.Errorf("%v successful probes of a ready pod", n)
	}
	deletePod(t, space, "probed")
	// The pod may be deleted from the API server before the node has cleaned up.
	for deadline := time.Now().Add(timeout); hasNamespace(scrapeNode(t, node, "/metrics/probes"), space); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("there are still metrics of the deleted pod")
		}
	}
}

// hasNamespace reports whether a series has this namespace.
func hasNamespace(families map[string]*dto.MetricFamily, space string) bool {
	for _, f := range families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetName() == "namespace" && l.GetValue() == space {
					return true
				}
			}
		}
	}
	return false
}
