package metrics

import "testing"

// Names, types and help are the reference kubelet's.
func TestMemoryQoS(t *testing.T) {
	m := newMetrics(t)
	if m.MemoryQoS(false) != nil {
		t.Error("shown without the feature gate")
	}
	m.MemoryQoS(true)(64<<20, 16<<20)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		help  string
		value float64
	}{
		"kubelet_memory_qos_node_memory_min_bytes": {"[ALPHA] Total cgroup v2 memory.min in bytes for Guaranteed pods. This memory is hard-reserved and never reclaimed by the kernel.", 64 << 20},
		"kubelet_memory_qos_node_memory_low_bytes": {"[ALPHA] Total cgroup v2 memory.low in bytes for Burstable pods. This memory is soft-reserved and may be reclaimed under extreme pressure.", 16 << 20},
	}
	for _, f := range families {
		w, ok := want[f.GetName()]
		if !ok {
			continue
		}
		delete(want, f.GetName())
		if got := f.Metric[0].Gauge.GetValue(); f.GetHelp() != w.help || got != w.value {
			t.Errorf("%s: %q is %v, want %q, %v", f.GetName(), f.GetHelp(), got, w.help, w.value)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}
