package node

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"swiftlet/internal/config"
)

// ConfigFrom takes the node's Config from the kubelet's configuration. The caller sets
// CgroupVersion and SwiftletVersion.
func ConfigFrom(cfg *config.Config, hostname string) (Config, error) {
	kc, flags := &cfg.Kubelet, &cfg.Flags
	ips, err := parseIPs(flags.NodeIP)
	if err != nil {
		return Config{}, err
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
		MaxPods:               int(kc.MaxPods),
		PodsPerCore:           int(kc.PodsPerCore),
		Reserved:              reserved,
		EnforceAllocatable:    slices.Contains(kc.EnforceNodeAllocatable, "pods"),
		Reservations:          ReservationsFrom(kc, reserved),
		StatusUpdateFrequency: kc.NodeStatusUpdateFrequency.Duration,
		StatusReportFrequency: kc.NodeStatusReportFrequency.Duration,
		LeaseDuration:         time.Duration(kc.NodeLeaseDurationSeconds) * time.Second,
		MaxImages:             int(*kc.NodeStatusMaxImages),
		Port:                  kc.Port,
		Version:               config.KubernetesVersion,
		Gate:                  cfg.Gate,
		Standalone:            flags.Kubeconfig == "",
		RootDir:               flags.RootDir,
	}, nil
}

func parseIPs(list string) ([]net.IP, error) {
	var ips []net.IP
	for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		ip := net.ParseIP(strings.TrimSpace(text))
		if ip == nil {
			return nil, fmt.Errorf("parse --node-ip: %q is not an IP address", text)
		}
		ips = append(ips, ip)
	}
	return ips, nil
}
