package image

import (
	"path/filepath"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/config"
)

// ConfigFrom reads how images are pulled.
func ConfigFrom(cfg *config.Config) Config {
	kc := &cfg.Kubelet
	c := Config{
		Serialize: *kc.SerializeImagePulls,
		QPS:       float32(*kc.RegistryPullQPS),
		Burst:     int(kc.RegistryBurst),
	}
	if kc.MaxParallelImagePulls != nil {
		c.MaxParallel = int(*kc.MaxParallelImagePulls)
	}
	if cfg.Features.KubeletEnsureSecretPulledImages {
		c.Verify = Verification{
			Dir:       filepath.Join(cfg.Flags.RootDir, "image_manager"), // where the reference kubelet has it
			Policy:    kc.ImagePullCredentialsVerificationPolicy,
			Allowlist: kc.PreloadedImagesVerificationAllowlist,
		}
	}
	return c
}

// CollectorConfigFrom reads when images are garbage collected.
func CollectorConfigFrom(kc *kubelet.KubeletConfiguration) CollectorConfig {
	return CollectorConfig{
		High:   int(*kc.ImageGCHighThresholdPercent),
		Low:    int(*kc.ImageGCLowThresholdPercent),
		MinAge: kc.ImageMinimumGCAge.Duration,
		MaxAge: kc.ImageMaximumGCAge.Duration,
	}
}
