package node

import (
	"slices"
	"time"

	"swiftlet/internal/config"
)

// ConfigFrom takes the node's Config from the kubelet's configuration. The caller sets
// CgroupVersion and SwiftletVersion.
func ConfigFrom(cfg *config.Config, hostname string) (Config, error) {
	kc, flags := &cfg.Kubelet, &cfg.Flags
	// config has reported addresses that cannot be parsed.
	ips, _, err := config.NodeIPs(flags)
	if err != nil {
		return Config{}, config.Invalid("--node-ip", "%q %s", flags.NodeIP, err)
	}
	reserved, err := ReservedFrom(kc, flags.AllocatableIgnoreEviction)
	if err != nil {
		return Config{}, err
	}
	return Config{
		NodeName: hostname,
		Hostname: hostname,
		NodeIPs:  ips,
		Registration: Registration{
			RegisterNode:            *kc.RegisterNode,
			Labels:                  flags.NodeLabels,
			Taints:                  kc.RegisterWithTaints,
			ProviderID:              kc.ProviderID,
			ExternalCloud:           flags.CloudProvider == "external",
			ControllerManagedAttach: *kc.EnableControllerAttachDetach,
		},
		MaxPods:            int(kc.MaxPods),
		PodsPerCore:        int(kc.PodsPerCore),
		Reserved:           reserved,
		EnforceAllocatable: slices.Contains(kc.EnforceNodeAllocatable, "pods"),
		Reservations:       ReservationsFrom(kc, reserved),
		Heartbeats: Heartbeats{
			StatusUpdateFrequency: kc.NodeStatusUpdateFrequency.Duration,
			StatusReportFrequency: kc.NodeStatusReportFrequency.Duration,
			LeaseDuration:         time.Duration(kc.NodeLeaseDurationSeconds) * time.Second,
		},
		MaxImages:  int(*kc.NodeStatusMaxImages),
		Port:       kc.Port,
		Version:    config.KubernetesVersion,
		Gate:       cfg.Gate,
		Standalone: flags.Kubeconfig == "",
		RootDir:    flags.RootDir,
	}, nil
}
