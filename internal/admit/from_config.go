package admit

import (
	v1 "k8s.io/api/core/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/config"
	"swiftlet/internal/host"
)

// ChecksConfigFrom takes the ChecksConfig from the kubelet's configuration. kernel is the
// kernel version.
func ChecksConfigFrom(cfg *config.Config, kernel string) ChecksConfig {
	return ChecksConfig{
		Kernel:            kernel,
		UnsafeSysctls:     cfg.Kubelet.AllowedUnsafeSysctls,
		Version:           config.KubernetesVersion,
		AppArmor:          host.AppArmorEnabled(),
		PodLevelResources: cfg.Features.PodLevelResources,
	}
}

// ResizeRulesFrom takes the ResizeRules from the kubelet's configuration. mayUseSwap reports
// whether a container of a pod may use swap.
func ResizeRulesFrom(cfg *config.Config, mayUseSwap func(*v1.Pod, *v1.Container) bool) ResizeRules {
	kc := &cfg.Kubelet
	rules := ResizeRules{PodLevel: cfg.Features.InPlacePodLevelResourcesVerticalScaling, MayUseSwap: mayUseSwap}
	if kc.CPUManagerPolicy == "static" {
		rules.StaticCPUPolicy = kc.CPUManagerPolicy
	}
	if kc.MemoryManagerPolicy == kubelet.StaticMemoryManagerPolicy {
		rules.StaticMemoryPolicy = kc.MemoryManagerPolicy
	}
	return rules
}
