package cpu

import (
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/config"
	"swiftlet/internal/resource/topology"
)

// ConfigFrom reads the CPU manager's policy. reserved is how much CPU kubeReserved and
// systemReserved take together.
func ConfigFrom(cfg *config.Config, machine *topology.Machine, reserved resource.Quantity) (Config, error) {
	kc, f := &cfg.Kubelet, cfg.Features
	options, err := OptionsFrom(cfg)
	if err != nil {
		return Config{}, err
	}
	named, err := topology.ParseList(kc.ReservedSystemCPUs)
	if err != nil {
		return Config{}, config.Invalid("reservedSystemCPUs", "%s", err)
	}
	return Config{
		Policy:        kc.CPUManagerPolicy,
		Options:       options,
		Machine:       machine,
		Reserved:      named,
		ReservedCount: int(reserved.Value()), // rounded up
		PodLevel:      f.PodLevelResourceManagers,
		Path:          filepath.Join(cfg.Flags.RootDir, "cpu_manager_state"),
	}, nil
}
