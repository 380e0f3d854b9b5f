package agent

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

// A machine with more NUMA nodes than can be told apart runs pods that are placed nowhere.
func TestLayoutOfManyNodes(t *testing.T) {
	many := &topology.Machine{Nodes: []topology.Node{{ID: 0}, {ID: numa.Most}}}
	for name, c := range map[string]struct {
		change func(*kubelet.KubeletConfiguration)
		fails  bool
	}{
		"nothing is placed": {func(*kubelet.KubeletConfiguration) {}, false},
		"CPUs are":          {func(kc *kubelet.KubeletConfiguration) { kc.CPUManagerPolicy = cpu.Static }, true},
		"memory is":         {func(kc *kubelet.KubeletConfiguration) { kc.MemoryManagerPolicy = memory.Static }, true},
		"devices are":       {func(kc *kubelet.KubeletConfiguration) { kc.TopologyManagerPolicy = numa.BestEffort }, true},
	} {
		cfg := &config.Config{}
		kc := &cfg.Kubelet
		kc.CPUManagerPolicy, kc.MemoryManagerPolicy, kc.TopologyManagerPolicy = cpu.None, memory.None, numa.None
		c.change(kc)
		a := &Agent{cfg: cfg, log: slog.New(slog.DiscardHandler)}
		layout, err := a.layout(many)
		if (err != nil) != c.fails || layout.All != 0 && !c.fails {
			t.Errorf("%s: %v, %v", name, layout, err)
		}
	}
}
