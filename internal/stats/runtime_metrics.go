package stats

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
)

// writeRuntimeMetrics writes the metrics of pods and containers that the runtime reports. It returns
// false if they are to be read from the kernel: by configuration, or because the runtime reports none.
func (s *Stats) writeRuntimeMetrics(ctx context.Context, t *textWriter) bool {
	if !s.cfg.PodsFromRuntime {
		return false
	}
	var pods []*runtimeapi.PodSandboxMetrics
	descriptors, err := s.deps.Runtime.ListMetricDescriptors(ctx)
	if err == nil {
		pods, err = s.deps.Runtime.ListPodSandboxMetrics(ctx)
	}
	switch {
	case cri.IsUnimplemented(err):
		s.noRuntimeMetrics.Do(func() {
			s.deps.Log.Warn("stats: the runtime reports no metrics, reading them from the kernel", "err", err)
		})
		return false
	case err != nil:
		s.deps.Log.Error("stats: read metrics of the runtime failed", "err", err)
		return true
	}
	byName := metricsByName(pods)
	help := map[string]*runtimeapi.MetricDescriptor{}
	for _, d := range descriptors {
		help[d.Name] = d
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if d := help[name]; d != nil {
			writeRuntimeFamily(t, d, byName[name])
		}
	}
	return true
}

// metricsByName returns the metrics of all pods and containers.
func metricsByName(pods []*runtimeapi.PodSandboxMetrics) map[string][]*runtimeapi.Metric {
	byName := map[string][]*runtimeapi.Metric{}
	add := func(all []*runtimeapi.Metric) {
		for _, m := range all {
			byName[m.Name] = append(byName[m.Name], m)
		}
	}
	for _, p := range pods {
		add(p.Metrics)
		for _, c := range p.ContainerMetrics {
			add(c.Metrics)
		}
	}
	return byName
}

// writeRuntimeFamily writes one metric. It leaves out series that do not match the descriptor, and
// all but the first of equal ones.
func writeRuntimeFamily(t *textWriter, d *runtimeapi.MetricDescriptor, all []*runtimeapi.Metric) {
	written := map[string]bool{}
	for _, m := range all {
		labels, ok := labelsOf(d.LabelKeys, m.LabelValues)
		if !ok || written[labels] {
			continue
		}
		if len(written) == 0 {
			t.header(d.Name, strings.ToLower(m.MetricType.String()), "[INTERNAL] "+helpEscaper.Replace(d.Help))
		}
		written[labels] = true
		var at time.Time
		if m.Timestamp != 0 { // 0: read for this request
			at = time.Unix(0, m.Timestamp)
		}
		t.sample(d.Name, float64(m.GetValue().GetValue()), at, labels)
	}
}

var helpEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`)

// labelsOf formats labels in order of their names.
func labelsOf(keys, values []string) (string, bool) {
	if len(keys) != len(values) {
		return "", false
	}
	pairs := make([]string, len(keys))
	for i, key := range keys {
		pairs[i] = label(key, values[i])
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ","), true
}
