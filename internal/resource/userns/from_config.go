package userns

import "swiftlet/internal/config"

// ConfigFrom reads which IDs pods in user namespaces of their own may have.
func ConfigFrom(cfg *config.Config) (Config, error) {
	perPod := int64(Size)
	if u := cfg.Kubelet.UserNamespaces; u != nil && u.IDsPerPod != nil {
		perPod = *u.IDsPerPod
	}
	first, count, err := Subordinate(int64(cfg.Kubelet.MaxPods) * perPod)
	if err != nil {
		return Config{}, err
	}
	return Config{RootDir: cfg.Flags.RootDir, First: first, Count: count, PerPod: perPod}, nil
}
