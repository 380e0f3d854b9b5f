package numa

import "swiftlet/internal/config"

// ConfigFrom reads the topology manager's policy.
func ConfigFrom(cfg *config.Config, layout Layout) (Config, error) {
	kc := &cfg.Kubelet
	options, err := ParseOptions(kc.TopologyManagerPolicyOptions)
	if err != nil {
		return Config{}, err
	}
	return Config{
		Policy:   kc.TopologyManagerPolicy,
		Scope:    kc.TopologyManagerScope,
		Options:  options,
		Layout:   layout,
		PodLevel: cfg.Features.PodLevelResourceManagers,
	}, nil
}
