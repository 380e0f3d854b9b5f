package resource

import (
	"log/slog"

	"swiftlet/internal/config"
	"swiftlet/internal/resource/cpu"
	"swiftlet/internal/resource/memory"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/topology"
)

// Machine is the CPUs and NUMA nodes of this machine.
type Machine struct {
	Topology *topology.Machine
	Layout   numa.Layout
}

// ReadMachine reads the machine's topology. Where that fails and no policy depends on it, the
// topology is empty.
func ReadMachine(cfg *config.Config, memoryBytes int64, log *slog.Logger) (Machine, error) {
	found, err := topology.Read("/sys", uint64(memoryBytes))
	if err != nil {
		if !optional(cfg, err, log) {
			return Machine{}, err
		}
		found = &topology.Machine{}
	}
	layout, err := layoutOf(cfg, found, log)
	return Machine{Topology: found, Layout: layout}, err
}

func layoutOf(cfg *config.Config, m *topology.Machine, log *slog.Logger) (numa.Layout, error) {
	layout, err := numa.LayoutOf(m)
	if err != nil && optional(cfg, err, log) {
		return numa.Layout{}, nil
	}
	return layout, err
}

// optional reports whether the node works without the topology, and logs why it has to.
func optional(cfg *config.Config, err error, log *slog.Logger) bool {
	kc := &cfg.Kubelet
	if kc.CPUManagerPolicy != cpu.None || kc.MemoryManagerPolicy != memory.None || kc.TopologyManagerPolicy != numa.None {
		return false
	}
	log.Warn("topology: unavailable, no policy depends on it", "err", err)
	return true
}
