package resource

import (
	"log/slog"
	"testing"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/config"
	"swiftlet/internal/resource/cpu"
	"swiftlet/internal/resource/memory"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/topology"
)

// A machine with too many NUMA nodes runs pods unless a policy places them.
func TestLayoutOfManyNodes(t *testing.T) {
	many := &topology.Machine{Nodes: []topology.Node{{ID: 0}, {ID: numa.MaxNodes}}}
	for name, c := range map[string]struct {
		change func(*kubelet.KubeletConfiguration)
		fails  bool
	}{
		"no_policy":                   {func(*kubelet.KubeletConfiguration) {}, false},
		"static_CPU_policy":           {func(kc *kubelet.KubeletConfiguration) { kc.CPUManagerPolicy = cpu.Static }, true},
		"static_memory_policy":        {func(kc *kubelet.KubeletConfiguration) { kc.MemoryManagerPolicy = memory.Static }, true},
		"best_effort_topology_policy": {func(kc *kubelet.KubeletConfiguration) { kc.TopologyManagerPolicy = numa.BestEffort }, true},
	} {
		cfg := &config.Config{}
		kc := &cfg.Kubelet
		kc.CPUManagerPolicy, kc.MemoryManagerPolicy, kc.TopologyManagerPolicy = cpu.None, memory.None, numa.None
		c.change(kc)
		layout, err := layoutOf(cfg, many, slog.New(slog.DiscardHandler))
		if (err != nil) != c.fails || layout.All != 0 && !c.fails {
			t.Errorf("%s: %v, %v", name, layout, err)
		}
	}
}
