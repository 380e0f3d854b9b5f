package stats

import (
	"context"
	"io"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// resourceMetric is one family of /metrics/resource. Exactly one of the three functions is
// set; each returns nil for no value.
type resourceMetric struct {
	name, kind, help string
	node             func(*statsapi.NodeStats) *measured
	pod              func(*statsapi.PodStats) *measured
	container        func(*statsapi.ContainerStats) *measured
}

// measured is a value and when it was read.
type measured struct {
	value float64
	at    time.Time
}

var resourceMetrics = []resourceMetric{
	{name: "container_cpu_usage_seconds_total", kind: "counter", help: "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
		container: func(c *statsapi.ContainerStats) *measured { return cpuSeconds(c.CPU) }},
	{name: "container_memory_working_set_bytes", kind: "gauge", help: "[STABLE] Current working set of the container in bytes",
		container: func(c *statsapi.ContainerStats) *measured { return workingSet(c.Memory) }},
	{name: "container_start_time_seconds", kind: "gauge", help: "[STABLE] Start time of the container since unix epoch in seconds",
		container: func(c *statsapi.ContainerStats) *measured {
			return &measured{value: float64(c.StartTime.UnixNano()) / 1e9}
		}},
	{name: "container_swap_limit_bytes", kind: "gauge", help: "[ALPHA] Current amount of the container swap limit in bytes. Reported only on non-windows systems",
		container: func(c *statsapi.ContainerStats) *measured { return swapLimit(c.Swap) }},
	{name: "container_swap_usage_bytes", kind: "gauge", help: "[ALPHA] Current amount of the container swap usage in bytes. Reported only on non-windows systems",
		container: func(c *statsapi.ContainerStats) *measured { return swapUsage(c.Swap) }},
	{name: "node_cpu_usage_seconds_total", kind: "counter", help: "[STABLE] Cumulative cpu time consumed by the node in core-seconds",
		node: func(n *statsapi.NodeStats) *measured { return cpuSeconds(n.CPU) }},
	{name: "node_memory_working_set_bytes", kind: "gauge", help: "[STABLE] Current working set of the node in bytes",
		node: func(n *statsapi.NodeStats) *measured { return workingSet(n.Memory) }},
	{name: "node_swap_usage_bytes", kind: "gauge", help: "[ALPHA] Current swap usage of the node in bytes. Reported only on non-windows systems",
		node: func(n *statsapi.NodeStats) *measured { return swapUsage(n.Swap) }},
	{name: "pod_cpu_usage_seconds_total", kind: "counter", help: "[STABLE] Cumulative cpu time consumed by the pod in core-seconds",
		pod: func(p *statsapi.PodStats) *measured { return cpuSeconds(p.CPU) }},
	{name: "pod_memory_working_set_bytes", kind: "gauge", help: "[STABLE] Current working set of the pod in bytes",
		pod: func(p *statsapi.PodStats) *measured { return workingSet(p.Memory) }},
	{name: "pod_swap_usage_bytes", kind: "gauge", help: "[ALPHA] Current amount of the pod swap usage in bytes. Reported only on non-windows systems",
		pod: func(p *statsapi.PodStats) *measured { return swapUsage(p.Swap) }},
}

func cpuSeconds(c *statsapi.CPUStats) *measured {
	if c == nil || c.UsageCoreNanoSeconds == nil {
		return nil
	}
	return &measured{float64(*c.UsageCoreNanoSeconds) / 1e9, c.Time.Time}
}

func workingSet(m *statsapi.MemoryStats) *measured {
	if m == nil || m.WorkingSetBytes == nil {
		return nil
	}
	return &measured{float64(*m.WorkingSetBytes), m.Time.Time}
}

func swapUsage(s *statsapi.SwapStats) *measured {
	if s == nil {
		return nil
	}
	return &measured{float64(*s.SwapUsageBytes), s.Time.Time}
}

func swapLimit(s *statsapi.SwapStats) *measured {
	if s.SwapAvailableBytes == nil {
		return nil
	}
	return &measured{float64(*s.SwapAvailableBytes + *s.SwapUsageBytes), s.Time.Time}
}

// WriteResource writes /metrics/resource, which autoscalers read. It reports a read error as
// the metric resource_scrape_error; it returns only write errors.
func (s *Stats) WriteResource(ctx context.Context, out io.Writer) error {
	t := newTextWriter(out)
	scrapeError := 0.0
	all, err := s.UsageSummary(ctx)
	if err != nil {
		s.deps.Log.Error("stats: read usage for /metrics/resource failed", "err", err)
		scrapeError = 1
	} else {
		for i := range resourceMetrics {
			resourceMetrics[i].write(t, all)
		}
	}
	t.header("resource_scrape_error", "gauge", "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise")
	t.sample("resource_scrape_error", scrapeError, time.Time{})
	return t.close()
}

// write writes the family, or nothing if there is no value.
func (m *resourceMetric) write(t *textWriter, all *statsapi.Summary) {
	begun := false
	put := func(got *measured, labels ...string) {
		if got == nil {
			return
		}
		if !begun {
			t.header(m.name, m.kind, m.help)
			begun = true
		}
		t.sample(m.name, got.value, got.at, labels...)
	}
	if m.node != nil {
		put(m.node(&all.Node))
		return
	}
	for i := range all.Pods {
		p := &all.Pods[i]
		of := label("namespace", p.PodRef.Namespace) + "," + label("pod", p.PodRef.Name)
		if m.pod != nil {
			put(m.pod(p), of)
			continue
		}
		for j := range p.Containers {
			put(m.container(&p.Containers[j]), label("container", p.Containers[j].Name), ",", of)
		}
	}
}
