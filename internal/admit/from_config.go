package admit

import (
	v1 "k8s.io/api/core/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/config"
	"swiftlet/internal/host"
)

// ChecksConfigFrom reads what pods are checked for. kernel is the kernel's version.
func ChecksConfigFrom(cfg *config.Config, kernel string) ChecksConfig {
	return ChecksConfig{
		Kernel:            kernel,
		UnsafeSysctls:     cfg.Kubelet.AllowedUnsafeSysctls,
		Version:           config.KubernetesVersion,
		AppArmor:          host.AppArmorEnabled(),
		PodLevelResources: cfg.Features.PodLevelResources,
	}
}

// ResizeRulesFrom reads which resizes are infeasible. swaps reports whether a container of a
// pod may swap.
func ResizeRulesFrom(cfg *config.Config, swaps func(*v1.Pod, *v1.Container) bool) ResizeRules {
	kc := &cfg.Kubelet
	rules := ResizeRules{PodLevel: cfg.Features.InPlacePodLevelResourcesVerticalScaling, Swaps: swaps}
	if kc.CPUManagerPolicy == "static" {
		rules.FixedCPU = kc.CPUManagerPolicy
	}
	if kc.MemoryManagerPolicy == kubelet.StaticMemoryManagerPolicy {
		rules.FixedMemory = kc.MemoryManagerPolicy
	}
	return rules
}
