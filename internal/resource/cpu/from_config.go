package cpu

import (
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/config"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/topology"
)

// ConfigFrom reads the CPU manager's policy. reserved is how much CPU kubeReserved and
// systemReserved take together.
func ConfigFrom(cfg *config.Config, machine *topology.Machine, reserved resource.Quantity) (Config, error) {
	kc, f := &cfg.Kubelet, cfg.Features
	options, err := ParseOptions(kc.CPUManagerPolicyOptions, AllowedOptions{Alpha: f.CPUManagerPolicyAlphaOptions, Beta: f.CPUManagerPolicyBetaOptions})
	if err != nil {
		return Config{}, err
	}
	if options.BySocket && kc.TopologyManagerPolicy == numa.SingleNode {
		return Config{}, fmt.Errorf("cpuManagerPolicyOptions: align-by-socket excludes topologyManagerPolicy %s", numa.SingleNode)
	}
	named, err := topology.ParseList(kc.ReservedSystemCPUs)
	if err != nil {
		return Config{}, fmt.Errorf("reservedSystemCPUs: %w", err)
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
