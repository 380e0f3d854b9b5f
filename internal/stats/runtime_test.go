package stats

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/pod"
)

func fromRuntime(cfg *Config, _ *Deps) { cfg.PodsFromRuntime = true }

func reported(n uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: n} }

// reportPod makes the runtime report usage of a pod. Its container's usage has no rate and no swap.
func (w *fakeNode) reportPod(name string) {
	const at = 1_700_000_100_000_000_000
	w.runtime.pods = append(w.runtime.pods, &runtimeapi.PodSandboxStats{
		Attributes: &runtimeapi.PodSandboxAttributes{Id: "sandbox-" + name},
		Linux: &runtimeapi.LinuxPodSandboxStats{
			Cpu:     &runtimeapi.CpuUsage{Timestamp: at, UsageCoreNanoSeconds: reported(5e9), UsageNanoCores: reported(7)},
			Memory:  &runtimeapi.MemoryUsage{Timestamp: at, WorkingSetBytes: reported(300)},
			Network: &runtimeapi.NetworkUsage{Timestamp: at, DefaultInterface: &runtimeapi.NetworkInterfaceUsage{Name: "eth0", RxBytes: reported(1)}},
			Process: &runtimeapi.ProcessUsage{ProcessCount: reported(3)},
			Containers: []*runtimeapi.ContainerStats{
				{Attributes: &runtimeapi.ContainerAttributes{Id: "gone"}},
				{
					Attributes:    &runtimeapi.ContainerAttributes{Id: "container-" + name},
					Cpu:           &runtimeapi.CpuUsage{Timestamp: at, UsageCoreNanoSeconds: reported(2e9)},
					Memory:        &runtimeapi.MemoryUsage{Timestamp: at, WorkingSetBytes: reported(200)},
					WritableLayer: &runtimeapi.FilesystemUsage{Timestamp: at, UsedBytes: reported(4096), InodesUsed: reported(2)},
				},
			},
		},
	})
}

// without drops what does not come from the runtime.
func without(p statsapi.PodStats) statsapi.PodStats {
	p.EphemeralStorage, p.Containers[0].Logs = nil, nil
	return p
}

func TestSummaryFromRuntime(t *testing.T) {
	w := newFakeNode(t, 2)
	w.addPod("a")
	w.addPod("unreported")
	w.reportPod("a")
	w.reportPod("unknown")
	s := w.stats(fromRuntime)
	full, err := s.Summary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	usage, err := s.UsageSummary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(full.Pods) != 1 || len(full.Pods[0].Containers) != 1 || len(usage.Pods) != 1 || len(usage.Pods[0].Containers) != 1 {
		t.Fatalf("pods: %+v and %+v", full.Pods, usage.Pods)
	}
	if got := *full.Pods[0].EphemeralStorage.UsedBytes; got < 4096 {
		t.Errorf("ephemeral storage of %d bytes does not include the writable layer", got)
	}
	const begun, at = `"2023-11-14T22:13:20Z"`, `"2023-11-14T22:15:00Z"`
	times := strings.NewReplacer("BEGUN", begun, "AT", at)
	for what, c := range map[string]struct {
		got  statsapi.PodStats
		want string
	}{
		"full": {without(full.Pods[0]), `{"podRef":{"name":"a","namespace":"ns","uid":"uid-a"},"startTime":BEGUN,"containers":[{"name":"c","startTime":BEGUN,` +
			`"cpu":{"time":AT,"usageNanoCores":20000000,"usageCoreNanoSeconds":2000000000},"memory":{"time":AT,"workingSetBytes":200},"io":{"time":AT},` +
			`"rootfs":{"time":AT,"usedBytes":4096,"inodesUsed":2},"swap":{"time":AT,"swapAvailableBytes":0,"swapUsageBytes":0}}],` +
			`"cpu":{"time":AT,"usageNanoCores":7,"usageCoreNanoSeconds":5000000000},"memory":{"time":AT,"workingSetBytes":300},` +
			`"network":{"time":AT,"name":"eth0","rxBytes":1},"process_stats":{"process_count":3}}`},
		"only CPU and memory": {usage.Pods[0], `{"podRef":{"name":"a","namespace":"ns","uid":"uid-a"},"startTime":BEGUN,"containers":[{"name":"c","startTime":BEGUN,` +
			`"cpu":{"time":AT,"usageNanoCores":20000000,"usageCoreNanoSeconds":2000000000},` +
			`"memory":{"time":AT,"availableBytes":0,"usageBytes":0,"workingSetBytes":200,"rssBytes":0,"pageFaults":0,"majorPageFaults":0},` +
			`"swap":{"time":AT,"swapAvailableBytes":0,"swapUsageBytes":0}}],` +
			`"cpu":{"time":AT,"usageNanoCores":7,"usageCoreNanoSeconds":5000000000},"memory":{"time":AT,"workingSetBytes":300},` +
			`"swap":{"time":AT,"swapAvailableBytes":0,"swapUsageBytes":0}}`},
	} {
		text, err := json.Marshal(c.got)
		if want := times.Replace(c.want); err != nil || string(text) != want {
			t.Errorf("%s:\ngot  %s\nwant %s", what, text, want)
		}
	}
	// The node and its system cgroups are read from the kernel.
	if *full.Node.CPU.UsageCoreNanoSeconds != 50e9 || full.Node.SystemContainers[0].Name != statsapi.SystemContainerPods {
		t.Errorf("node: %+v", full.Node)
	}
	w.clock.Step(20 * time.Second)
	c := w.runtime.pods[0].Linux.Containers[1]
	c.Cpu = &runtimeapi.CpuUsage{Timestamp: w.clock.Now().UnixNano(), UsageCoreNanoSeconds: reported(6e9)}
	if usage, err = s.UsageSummary(t.Context()); err != nil || *usage.Pods[0].Containers[0].CPU.UsageNanoCores != 2e8 {
		t.Errorf("rate: %v, %v", *usage.Pods[0].Containers[0].CPU.UsageNanoCores, err)
	}
}

// A pod whose usage the runtime reports only in part has no series for the rest.
func TestResourceMetricsOfPartialReport(t *testing.T) {
	w := newFakeNode(t, 2)
	w.pods = append(w.pods, pod.Observed{Ref: pod.Ref{Namespace: "ns", Name: "a"}, Sandboxes: []pod.Sandbox{{ID: "sandbox-a", Ready: true}}})
	w.runtime.pods = []*runtimeapi.PodSandboxStats{{Attributes: &runtimeapi.PodSandboxAttributes{Id: "sandbox-a"}}}
	var out bytes.Buffer
	if err := w.stats(fromRuntime).WriteResource(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, `pod="a"`) || !strings.Contains(text, "resource_scrape_error 0\n") {
		t.Errorf("got:\n%s", text)
	}
}

func TestMetricsFromRuntime(t *testing.T) {
	w := newFakeNode(t, 2)
	w.addPod("a")
	w.runtime.descriptors = []*runtimeapi.MetricDescriptor{
		{Name: "container_b_total", Help: "B.", LabelKeys: []string{"pod", "container"}},
		{Name: "container_a_bytes", Help: "A\\\n.", LabelKeys: []string{"pod"}},
	}
	gauge := &runtimeapi.Metric{Name: "container_a_bytes", MetricType: runtimeapi.MetricType_GAUGE, LabelValues: []string{"a"}, Value: reported(5), Timestamp: 1_700_000_000_123_000_000}
	counter := &runtimeapi.Metric{Name: "container_b_total", MetricType: runtimeapi.MetricType_COUNTER, LabelValues: []string{"a", `c"`}, Value: reported(6)}
	w.runtime.metrics = []*runtimeapi.PodSandboxMetrics{{
		Metrics:          []*runtimeapi.Metric{gauge, gauge, {Name: "container_a_bytes", LabelValues: []string{"too", "many"}}, {Name: "not_described"}},
		ContainerMetrics: []*runtimeapi.ContainerMetrics{{Metrics: []*runtimeapi.Metric{counter}}},
	}}
	const want = `# HELP container_a_bytes [INTERNAL] A\\\n.
# TYPE container_a_bytes gauge
container_a_bytes{pod="a"} 5 1700000000123
# HELP container_b_total [INTERNAL] B.
# TYPE container_b_total counter
container_b_total{container="c\"",pod="a"} 6
# HELP machine_cpu_books Number of CPU books.
`
	if got := w.cadvisor(t, fromRuntime); !strings.HasPrefix(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	w.runtime.err = errors.New("broken")
	if got := w.cadvisor(t, fromRuntime); strings.Contains(got, "container_") || !strings.Contains(got, "machine_cpu_cores") {
		t.Errorf("the runtime fails, got:\n%s", got)
	}
}

func (w *fakeNode) cadvisor(t *testing.T, edit func(*Config, *Deps)) string {
	t.Helper()
	var out bytes.Buffer
	if err := w.stats(edit).WriteCadvisor(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// What the runtime does not report is read from the kernel.
func TestRuntimeWithoutStats(t *testing.T) {
	w := newFakeNode(t, 2)
	w.addPod("a")
	w.runtime.err = status.Error(codes.Unimplemented, "unknown method")
	s := w.stats(fromRuntime)
	for name, read := range map[string]func() (*statsapi.Summary, error){
		"full":                func() (*statsapi.Summary, error) { return s.Summary(t.Context()) },
		"only CPU and memory": func() (*statsapi.Summary, error) { return s.UsageSummary(t.Context()) },
	} {
		got, err := read()
		if err != nil || len(got.Pods) != 1 || *got.Pods[0].CPU.UsageCoreNanoSeconds != 11e9 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got := w.cadvisor(t, fromRuntime); !strings.Contains(got, `container_cpu_usage_seconds_total{container="c"`) {
		t.Errorf("no metrics of the container:\n%s", got)
	}
}
