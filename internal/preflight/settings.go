package preflight

import (
	"errors"

	"swiftlet/internal/admit"
	"swiftlet/internal/cgroup"
	"swiftlet/internal/config"
	"swiftlet/internal/cri"
	"swiftlet/internal/eviction"
	"swiftlet/internal/image"
	"swiftlet/internal/logs"
	"swiftlet/internal/node"
	"swiftlet/internal/resource/cpu"
	"swiftlet/internal/resource/numa"
)

func runtimeEndpoint(cfg *config.Config) error {
	client, err := cri.Dial(cri.ConfigFrom(&cfg.Kubelet)) // makes no connection
	if err != nil {
		return about("containerRuntimeEndpoint", err)
	}
	return client.Close()
}

func cpuOptions(cfg *config.Config) error {
	_, err := cpu.OptionsFrom(cfg)
	return err
}

func topologyOptions(cfg *config.Config) error {
	_, err := numa.ParseOptions(cfg.Kubelet.TopologyManagerPolicyOptions)
	return err
}

func sysctls(cfg *config.Config) error {
	_, err := admit.Sysctls("", cfg.Kubelet.AllowedUnsafeSysctls)
	return err
}

func reservations(cfg *config.Config) error {
	_, reserved := node.ReservedFrom(&cfg.Kubelet, cfg.Flags.AllocatableIgnoreEviction)
	_, shares := cgroup.ConfigFrom(&cfg.Kubelet, cgroup.Node{QOSReserved: cfg.Features.QOSReserved})
	return errors.Join(reserved, about("qosReserved", shares))
}

func evictionThresholds(cfg *config.Config) error {
	_, err := eviction.ConfigFrom(cfg)
	return err
}

func logRotation(cfg *config.Config) error {
	_, err := logs.RotateConfigFrom(&cfg.Kubelet)
	return about("containerLogMaxSize", err)
}

func imagePulls(cfg *config.Config) error {
	return about("imagePullCredentialsVerificationPolicy", image.ConfigFrom(cfg).Verify.Check())
}
