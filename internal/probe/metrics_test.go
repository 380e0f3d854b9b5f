package probe

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// The counters survive a restart of the container, and are deleted with the pod.
func TestMetrics(t *testing.T) {
	withProber(t, func(p *Prober, _ *script, _ *eventLog) {
		of, observed := podWith(v1.Container{
			LivenessProbe:  command("l=+-?", 10, 5),
			ReadinessProbe: command("r=--+", 10, 5), // the failures are of early runs and do not count
		})
		of.Namespace = "ns"
		p.Watch(of, observed, "", nil, false)
		time.Sleep(5 * time.Second)
		restarted := &pod.Observed{Containers: []pod.Container{{ID: "id2", Name: "c", State: pod.Running, StartedAt: time.Now()}}}
		p.Watch(of, restarted, "", nil, false)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		want := []string{
			"Liveness failed 1", "Liveness successful 1", "Liveness unknown 1", "Readiness successful 3",
			"Liveness took 3", "Readiness took 3",
		}
		if got := counts(t, p); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		p.Forget(of.UID)
		if left := counts(t, p); len(left) != 0 {
			t.Errorf("series left of a forgotten pod: %q", left)
		}
	})
}

// counts lists the counters of pod p.
func counts(t *testing.T, p *Prober) []string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(p)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var totals, durations []string
	for _, f := range families {
		for _, m := range f.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["container"] != "c" || labels["pod"] != "p" || labels["namespace"] != "ns" {
				t.Errorf("%s has labels %v", f.GetName(), labels)
			}
			if m.Histogram != nil {
				durations = append(durations, fmt.Sprintf("%s took %d", labels["probe_type"], m.Histogram.GetSampleCount()))
			} else {
				totals = append(totals, fmt.Sprintf("%s %s %v", labels["probe_type"], labels["result"], m.Counter.GetValue()))
			}
		}
	}
	return append(totals, durations...)
}

// TestMonitoring: the metric of probes that the rules and the dashboard of examples/monitoring use has these labels.
func TestMonitoring(t *testing.T) {
	text, err := os.ReadFile("../../examples/monitoring/metrics.tsv")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for line := range strings.Lines(string(text)) {
		name, labels, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !strings.HasPrefix(name, "prober_") {
			continue
		}
		checked++
		descriptions := make(chan *prometheus.Desc, 10)
		newMetrics().total.Describe(descriptions)
		description := (<-descriptions).String()
		if !strings.Contains(description, `fqName: "`+name+`"`) {
			t.Errorf("no metric %s in %s", name, description)
		}
		_, own, _ := strings.Cut(description, "variableLabels: {")
		for label := range strings.SplitSeq(labels, ",") {
			if !slices.Contains(strings.Split(strings.TrimRight(own, "}"), ","), label) {
				t.Errorf("no label %s in %s", label, description)
			}
		}
	}
	if checked == 0 {
		t.Error("metrics.tsv has no metric of probes")
	}
}
