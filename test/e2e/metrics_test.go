package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

// TestMetrics compares names, types and labels of /metrics with the recording of the reference
// kubelet, except for the metrics that docs/metrics.md lists as not shown. These must not be shown.
func TestMetrics(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	startPod(t, space, podWithInitAndVolumes("measured", node.Name()))
	hopeless := sleeper("hopeless", node.Name())
	hopeless.Spec.Containers[0].Command = []string{"/no/such/command"}
	create(t, space, hopeless)
	startPod(t, space, podWithInitAndVolumes("ended", node.Name()))
	deletePod(t, space, "ended")

	want := recordedMetrics(t)
	if kubelet == bed.Ours {
		for name := range metricsNotShown(t) {
			if _, recorded := want[name]; !recorded {
				t.Errorf("docs/metrics.md: %s is not in the recording of the reference", name)
			}
			delete(want, name)
		}
	}
	// A failed start and a status write may be counted a moment later.
	deadline := time.Now().Add(timeout)
	for {
		shown := scrape(t, node)
		differences := compareMetrics(want, shown)
		if kubelet == bed.Ours {
			for name := range metricsNotShown(t) {
				if shown[name] != nil {
					differences = append(differences, name+" is shown, but docs/metrics.md lists it as not shown")
				}
			}
		}
		if len(differences) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d differences:\n%s", len(differences), strings.Join(differences, "\n"))
		}
		time.Sleep(time.Second)
	}
}

// TestMetricsCount checks that counters grow with a pod. Other tests use the node at the same time, so
// counters may grow by more.
func TestMetricsCount(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	before := scrape(t, node)
	startPod(t, space, podWithInitAndVolumes("counted", node.Name()))
	grown := map[string]float64{
		`kubelet_started_pods_total{}`:                                                                                                                1,
		`kubelet_started_containers_total{container_type="container"}`:                                                                                1,
		`kubelet_started_containers_total{container_type="init_container"}`:                                                                           1,
		`kubelet_terminated_containers_total{container_type="init_container",exit_code="0",reason="Completed"}`:                                       1,
		`kubelet_runtime_operations_total{operation_type="run_podsandbox"}`:                                                                           1,
		`kubelet_runtime_operations_total{operation_type="create_container"}`:                                                                         2,
		`kubelet_runtime_operations_total{operation_type="start_container"}`:                                                                          2,
		`kubelet_runtime_operations_duration_seconds{operation_type="start_container"}`:                                                               2,
		`kubelet_run_podsandbox_duration_seconds{runtime_handler=""}`:                                                                                 1,
		`kubelet_pod_worker_duration_seconds{operation_type="create"}`:                                                                                1,
		`kubelet_pod_worker_start_duration_seconds{}`:                                                                                                 1,
		`kubelet_containers_per_pod_count{}`:                                                                                                          1,
		`kubelet_pod_start_duration_seconds{}`:                                                                                                        1,
		`kubelet_pod_status_sync_duration_seconds{}`:                                                                                                  2,
		`kubelet_cgroup_manager_duration_seconds{operation_type="create"}`:                                                                            1,
		`storage_operation_duration_seconds{migrated="false",operation_name="volume_mount",status="success",volume_plugin="kubernetes.io/configmap"}`: 1,
		`volume_operation_total_seconds{operation_name="overall_volume_mount",plugin_name="kubernetes.io/empty-dir"}`:                                 1,
		`kubelet_http_requests_total{long_running="false",method="GET",path="metrics",server_type="readwrite"}`:                                       1,
		`apiserver_client_certificate_expiration_seconds{}`:                                                                                           1,
	}
	if kubelet == bed.Ours { // the reference misses some starts
		grown[`kubelet_pod_start_total_duration_seconds{}`] = 1
		grown[`kubelet_pod_start_sli_duration_seconds{}`] = 1
	}
	during := awaitMetrics(t, node, before, grown)
	for series, least := range map[string]float64{
		`kubelet_node_name{node="` + node.Name() + `"}`:                                                     1,
		`kubelet_running_pods{}`:                                                                            1,
		`kubelet_running_containers{container_state="running"}`:                                             1,
		`kubelet_desired_pods{static=""}`:                                                                   1,
		`kubelet_active_pods{static=""}`:                                                                    1,
		`kubelet_working_pods{config="desired",lifecycle="sync",static=""}`:                                 1,
		`volume_manager_total_volumes{plugin_name="kubernetes.io/configmap",state="actual_state_of_world"}`: 1,
		`kubelet_node_startup_registration_duration_seconds{}`:                                              0.000001,
	} {
		if got := valueOf(during, series); got < least && kubelet == bed.Ours {
			t.Errorf("%s is %v, want %v at least", series, got, least)
		}
	}
	if err := client().CoreV1().Pods(space).Delete(t.Context(), "counted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, space, "counted", timeout, gone)
	grown = map[string]float64{
		`kubelet_cgroup_manager_duration_seconds{operation_type="destroy"}`:                                                                             1,
		`kubelet_runtime_operations_total{operation_type="stop_podsandbox"}`:                                                                            1,
		`storage_operation_duration_seconds{migrated="false",operation_name="volume_unmount",status="success",volume_plugin="kubernetes.io/configmap"}`: 1,
	}
	if kubelet == bed.Ours { // the reference has other values of operation_type
		grown[`kubelet_pod_worker_duration_seconds{operation_type="kill"}`] = 1
		grown[`kubelet_pod_worker_duration_seconds{operation_type="terminated"}`] = 1
	}
	awaitMetrics(t, node, during, grown)
}

// podWithInitAndVolumes returns a pod with an init container and volumes.
func podWithInitAndVolumes(name, node string) *corev1.Pod {
	p := sleeper(name, node)
	p.Spec.Volumes = []corev1.Volume{
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "ca", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}}},
	}
	c := &p.Spec.Containers[0]
	c.VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}, {Name: "ca", MountPath: "/ca"}}
	first := *c.DeepCopy()
	first.Name, first.Command, first.Args, first.VolumeMounts = "init", []string{"true"}, nil, nil
	first.ReadinessProbe, first.LivenessProbe, first.StartupProbe, first.Lifecycle = nil, nil, nil, nil
	p.Spec.InitContainers = []corev1.Container{first}
	return p
}

// families are metrics by name.
type families map[string]*dto.MetricFamily

func scrape(t *testing.T, node *bed.Box) families {
	t.Helper()
	code, body := requestNode(t, node, http.MethodGet, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("/metrics: %d %s", code, body)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	shown, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatalf("/metrics: %v", err)
	}
	return shown
}

// awaitMetrics waits until each series has grown by at least its value.
func awaitMetrics(t *testing.T, node *bed.Box, before families, grown map[string]float64) families {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		shown := scrape(t, node)
		var short []string
		for series, least := range grown {
			if got := valueOf(shown, series) - valueOf(before, series); got < least {
				short = append(short, fmt.Sprintf("%s grew by %v, want %v at least", series, got, least))
			}
		}
		if len(short) == 0 {
			return shown
		}
		if time.Now().After(deadline) {
			slices.Sort(short)
			t.Fatal(strings.Join(short, "\n"))
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// valueOf returns the value of a series, or the sample count of a histogram; 0 if there is none. Labels
// are sorted by name.
func valueOf(shown families, series string) float64 {
	name, _, _ := strings.Cut(series, "{")
	for _, m := range shown[name].GetMetric() {
		var labels []string
		for _, l := range m.Label {
			labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
		}
		slices.Sort(labels)
		if name+"{"+strings.Join(labels, ",")+"}" != series {
			continue
		}
		switch shown[name].GetType() {
		case dto.MetricType_COUNTER:
			return m.Counter.GetValue()
		case dto.MetricType_HISTOGRAM:
			return float64(m.Histogram.GetSampleCount())
		}
		return m.Gauge.GetValue()
	}
	return 0
}

// kind has the type and the labels of a metric.
type kind struct{ is, labels string }

func recordedMetrics(t *testing.T) map[string]kind {
	t.Helper()
	all := map[string]kind{}
	for line := range strings.Lines(string(testdata(t, "metrics.tsv"))) {
		field := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(field) != 3 {
			t.Fatalf("metrics.tsv has a line with %d fields: %q", len(field), line)
		}
		if strings.HasPrefix(field[0], "go_") && field[0] != "go_goroutines" && field[0] != "go_info" {
			continue // they depend on the Go version
		}
		all[field[0]] = kind{field[1], field[2]}
	}
	return all
}

func compareMetrics(want map[string]kind, shown families) []string {
	var differences []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		family := shown[name]
		if family == nil {
			differences = append(differences, name+" is missing")
			continue
		}
		labels := map[string]bool{}
		for _, m := range family.Metric {
			for _, l := range m.Label {
				labels[l.GetName()] = true
			}
		}
		got := kind{strings.ToLower(family.GetType().String()), strings.Join(slices.Sorted(maps.Keys(labels)), ",")}
		if got != want[name] {
			differences = append(differences, fmt.Sprintf("%s is %v, want %v", name, got, want[name]))
		}
	}
	return differences
}

// metricsNotShown returns the metrics that docs/metrics.md lists as not shown.
func metricsNotShown(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n### Not shown\n")
	if !found {
		t.Fatal("docs/metrics.md has no section \"Not shown\"")
	}
	if section, _, found = strings.Cut(section, "\n## "); !found {
		section += "\n"
	}
	absent := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*`) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(row[1], -1) {
			absent[name[1]] = true
		}
	}
	if len(absent) == 0 {
		t.Fatal("docs/metrics.md lists no metrics in \"Not shown\"")
	}
	return absent
}
