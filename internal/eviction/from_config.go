package eviction

import (
	"slices"

	"swiftlet/internal/config"
)

// ConfigFrom reads the eviction settings of the configuration.
func ConfigFrom(cfg *config.Config) (Config, error) {
	kc := &cfg.Kubelet
	thresholds, err := Settings{
		Hard:            kc.EvictionHard,
		Soft:            kc.EvictionSoft,
		SoftGracePeriod: kc.EvictionSoftGracePeriod,
		MinimumReclaim:  kc.EvictionMinimumReclaim,
		Allocatable:     slices.Contains(kc.EnforceNodeAllocatable, "pods") && !cfg.Flags.AllocatableIgnoreEviction,
	}.Thresholds()
	if err != nil {
		return Config{}, err
	}
	return Config{
		Thresholds:               thresholds,
		PressureTransitionPeriod: kc.EvictionPressureTransitionPeriod.Duration,
		MaxPodGracePeriodSeconds: int64(kc.EvictionMaxPodGracePeriod),
		EnforceStorageLimits:     *kc.LocalStorageCapacityIsolation,
	}, nil
}
