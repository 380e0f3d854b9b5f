package memory

import (
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/config"
	"swiftlet/internal/resource/topology"
)

// ConfigFrom reads the memory manager's policy. reserved is all that the node keeps from pods.
func ConfigFrom(cfg *config.Config, machine *topology.Machine, reserved v1.ResourceList) Config {
	kc := &cfg.Kubelet
	return Config{
		Policy:      kc.MemoryManagerPolicy,
		Machine:     machine,
		PodLevel:    cfg.Features.PodLevelResourceManagers,
		Reserved:    ReservedByNode(kc.ReservedMemory),
		Reservation: reserved,
		Path:        filepath.Join(cfg.Flags.RootDir, "memory_manager_state"),
	}
}
