package agent

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/config"
	"swiftlet/internal/resource/cpu"
	"swiftlet/internal/resource/memory"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/topology"
)

func TestReservedByNode(t *testing.T) {
	list := func(pairs ...string) v1.ResourceList {
		l := v1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			l[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return l
	}
	entries := []kubelet.MemoryReservation{
		{NumaNode: 0, Limits: list("memory", "1Gi")},
		{NumaNode: 1, Limits: list("memory", "2Gi")},
		{NumaNode: 0, Limits: list("hugepages-1Gi", "3Gi")},
	}
	want := map[int]v1.ResourceList{0: list("memory", "1Gi", "hugepages-1Gi", "3Gi"), 1: list("memory", "2Gi")}
	if diff := cmp.Diff(want, reservedByNode(entries)); diff != "" {
		t.Errorf("kept of the nodes (-want +got):\n%s", diff)
	}
	if len(entries[0].Limits) != 1 {
		t.Error("the configuration was changed")
	}
}

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
