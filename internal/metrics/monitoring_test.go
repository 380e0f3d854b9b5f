package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
)

// described matches the text of a description.
var described = regexp.MustCompile(`^Desc\{fqName: "([^"]+)",.*variableLabels: \{([^}]*)\}\}$`)

// labelsByMetric returns the metrics of the agent.
func labelsByMetric(t *testing.T) map[string][]string {
	t.Helper()
	m := newMetrics(t)
	m.ClientCertificate(nil)
	m.ServingCertificate(nil)
	m.Cgroup(2)
	m.Volume()
	m.Worker()
	m.Panics()
	m.Eviction()
	m.Preemptions()
	m.Admission()
	m.Status()
	m.Image()
	m.CRI()
	m.Observe()
	m.Runtime()
	m.Podsync()
	m.RejectedClients()
	m.registry.MustRegister(sourceCollector{})
	all := map[string][]string{}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		m.registry.Describe(descriptions)
	}()
	for d := range descriptions {
		match := described.FindStringSubmatch(d.String())
		if match == nil {
			t.Errorf("read description %s", d)
			continue
		}
		all[match[1]] = strings.Split(match[2], ",")
	}
	// Those of the Kubernetes libraries.
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "process_") {
			all[f.GetName()] = nil
		}
	}
	return all
}

// TestMonitoring: the agent has every metric and label that the rules and the dashboard of examples/monitoring
// use. Those of probes are in package probe.
func TestMonitoring(t *testing.T) {
	text, err := os.ReadFile("../../examples/monitoring/metrics.tsv")
	if err != nil {
		t.Fatal(err)
	}
	has, checked := labelsByMetric(t), 0
	for line := range strings.Lines(string(text)) {
		name, labels, isMetric := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !isMetric || strings.HasPrefix(name, "prober_") {
			continue
		}
		checked++
		own, known := has[name]
		if !known {
			t.Errorf("the agent has no metric %s", name)
			continue
		}
		for label := range strings.SplitSeq(labels, ",") {
			if label != "" && !slices.Contains(own, label) {
				t.Errorf("%s has no label %s, only %q", name, label, own)
			}
		}
	}
	if checked < 25 {
		t.Errorf("only %d metrics checked", checked)
	}
}
