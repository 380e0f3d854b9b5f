package stats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sys/unix"

	"swiftlet/internal/cgroup"
)

// scrape parses metrics as Prometheus does.
func scrape(t *testing.T, write func(context.Context, io.Writer) error) map[string]*dto.MetricFamily {
	t.Helper()
	var text bytes.Buffer
	if err := write(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// valuesOf are the values of a family by their non-empty labels.
func valuesOf(f *dto.MetricFamily) map[string]float64 {
	values := map[string]float64{}
	for _, m := range f.GetMetric() {
		var labels []string
		for _, l := range m.Label {
			if l.GetValue() != "" {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
		}
		slices.Sort(labels)
		values[strings.Join(labels, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	return values
}

func TestCadvisor(t *testing.T) {
	eachCgroupVersion(t, func(t *testing.T, w *fakeNode) {
		w.addPod("a")
		const path = "/kubepods/burstable/poduid-a/container-a"
		if w.hierarchy.Version == 1 {
			w.set(path, "cpu", "cpu.cfs_quota_us", "50000")
		} else {
			w.set(path, "", "cpu.max", "50000 100000")
		}
		s := w.stats(nil)
		families := scrape(t, s.WriteCadvisor)
		const (
			container = "container=c id=" + path + " image=image:1 name=container-a namespace=ns pod=a"
			sandbox   = "id=/kubepods/burstable/poduid-a/sandbox-a image=pause:1 name=sandbox-a namespace=ns pod=a"
			podGroup  = "id=/kubepods/burstable/poduid-a namespace=ns pod=a"
		)
		shares := map[int]float64{1: 512, 2: 500}[w.hierarchy.Version]
		for name, want := range map[string]map[string]float64{
			"container_memory_working_set_bytes":        {container: 700000, sandbox: 700000, podGroup: 700000, "id=/kubepods": 700000},
			"container_memory_max_usage_bytes":          {container: 2000000},
			"container_memory_kernel_usage":             {container: 3000},
			"container_memory_failcnt":                  {container: 6},
			"container_memory_file_dirty_bytes":         {container: 12},
			"container_oom_events_total":                {container: 8},
			"container_cpu_user_seconds_total":          {container: 7, "id=/": 7},
			"container_cpu_system_seconds_total":        {container: 3},
			"container_cpu_cfs_throttled_seconds_total": {container: 5},
			"container_cpu_cfs_burst_periods_total":     {container: 2},
			"container_spec_cpu_quota":                  {container: 50000},
			"container_spec_cpu_period":                 {container: 100000, sandbox: 100000},
			"container_spec_cpu_shares":                 {container: shares},
			"container_spec_memory_limit_bytes":         {container: 0, "id=/": 1 << 40},
			"container_fs_reads_bytes_total":            {container: 4096, sandbox: 4096, podGroup: 4096, "id=/kubepods": 4096},
			"container_fs_writes_bytes_total":           {container: 8192},
			"container_fs_reads_total":                  {container: 1},
			"container_fs_writes_total":                 {container: 2},
			"container_threads":                         {container: 21, podGroup: 21},
			"container_threads_max":                     {container: 0},
			"container_processes":                       {container: 1, sandbox: 1},
			"container_start_time_seconds":              {container: float64(began.Unix())},
			"container_last_seen":                       {container: float64(w.clock.Now().Unix())},
			"machine_swap_bytes":                        {`boot_id=a"b`: 1 << 30},
			"container_scrape_error":                    {"": 0},
		} {
			got := valuesOf(families[name])
			for labels, value := range want {
				if have, ok := got[labels]; !ok || have != value {
					t.Errorf("%s{%s} is %v (%v), want %v", name, labels, have, ok, value)
				}
			}
		}
		usage := valuesOf(families["container_cpu_usage_seconds_total"])
		if got := usage[strings.Replace(container, " id", " cpu=total id", 1)]; got != 10 {
			t.Errorf("CPU time of the container is %v, want 10: %v", got, usage)
		}
		io := valuesOf(families["container_blkio_device_usage_total"])
		for operation, want := range map[string]float64{"Read": 4096, "Write": 8192} {
			labels := strings.Replace(container, " name=", " major=4095 minor=7 name=", 1)
			labels = strings.Replace(labels, " pod=", " operation="+operation+" pod=", 1)
			if io[labels] != want {
				t.Errorf("%s of the container is %v, want %v: %v", operation, io[labels], want, io)
			}
		}
		cost := families["container_fs_io_cost_usage_seconds_total"]
		if want := map[int]float64{2: 1.5}[w.hierarchy.Version]; valuesOf(cost)[container] != want || (cost == nil) != (want == 0) {
			t.Errorf("I/O cost is %v, want %v", cost, want)
		}
		if quota := families["container_spec_cpu_quota"]; len(quota.Metric) != 1 {
			t.Errorf("%d groups have a quota, want 1", len(quota.Metric))
		}
		if got := families["container_file_descriptors"]; got == nil || valuesOf(got)[container] < 3 {
			t.Errorf("open files: %v", got)
		}
		// The image of a sandbox is read once.
		scrape(t, s.WriteCadvisor)
		if w.runtime.calls != 1 {
			t.Errorf("%d reads of the image of one sandbox, want 1", w.runtime.calls)
		}
	})
}

// Prometheus rejects a whole scrape with a label that is not UTF-8. Pods name their interfaces as they like.
func TestLabelsAreUTF8(t *testing.T) {
	families := scrape(t, func(_ context.Context, out io.Writer) error {
		text := newTextWriter(out)
		for _, interfaces := range parseNetwork([]byte("\xff\"0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n")) {
			text.sample("packets", float64(interfaces.rxPackets), time.Time{}, label("interface", interfaces.name))
		}
		return text.close()
	})
	for _, m := range families["packets"].GetMetric() {
		if got, want := m.GetLabel()[0].GetValue(), "\uFFFD\"0"; got != want {
			t.Errorf("label %q, want %q", got, want)
		}
	}
}

func TestResource(t *testing.T) {
	eachCgroupVersion(t, func(t *testing.T, w *fakeNode) {
		w.addPod("a")
		families := scrape(t, w.stats(nil).WriteResource)
		const c, p = "container=c namespace=ns pod=a", "namespace=ns pod=a"
		for name, want := range map[string]map[string]float64{
			"container_cpu_usage_seconds_total":  {c: 10},
			"container_memory_working_set_bytes": {c: 700000},
			"container_start_time_seconds":       {c: float64(began.Unix())},
			"container_swap_usage_bytes":         {c: 70},
			"pod_cpu_usage_seconds_total":        {p: 11},
			"pod_memory_working_set_bytes":       {p: 700000},
			"pod_swap_usage_bytes":               {p: 70},
			"node_cpu_usage_seconds_total":       {"": 50},
			"resource_scrape_error":              {"": 0},
		} {
			if got := valuesOf(families[name]); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		if families["container_swap_limit_bytes"] != nil {
			t.Error("got a swap limit without one")
		}
	})
}

// noGroups fails to list cgroups.
type noGroups struct{ Cgroups }

func (noGroups) Groups() ([]cgroup.Group, error) { return nil, errors.New("no") }

// A read error sets the scrape error metric, and the other metrics are still there.
func TestScrapeError(t *testing.T) {
	w := newFakeNode(t, 2)
	s := w.stats(func(_ *Config, d *Deps) { d.Cgroups = noGroups{d.Cgroups} })
	for name, write := range map[string]func(context.Context, io.Writer) error{
		"container_scrape_error": s.WriteCadvisor, "resource_scrape_error": s.WriteResource,
	} {
		if got := valuesOf(scrape(t, write)[name]); got[""] != 1 {
			t.Errorf("%s is %v, want 1", name, got)
		}
	}
	if machine := scrape(t, s.WriteCadvisor)["machine_cpu_cores"]; machine == nil {
		t.Error("the metrics of the machine are missing")
	}
}

// cpuTime is the CPU time of this process: wall time means nothing on a busy machine.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkScrape reads a node with 200 pods on files of an ordinary file system. Every 15
// seconds, the sum of the three must stay below 750 ms of CPU time to cost less than 0.05
// of a core.
func BenchmarkScrape(b *testing.B) {
	w := newFakeNode(b, 1)
	w.addPods(200)
	s := w.stats(nil)
	for name, ask := range map[string]func() error{
		"cadvisor": func() error { return s.WriteCadvisor(b.Context(), io.Discard) },
		"resource": func() error { return s.WriteResource(b.Context(), io.Discard) },
		"summary":  func() error { _, err := s.Summary(b.Context()); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				if err := ask(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
		})
	}
}
