package kubeapi

import (
	"time"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// ConfigFrom reads how hard the API server may be asked.
func ConfigFrom(kc *kubelet.KubeletConfiguration, userAgent string) Config {
	lease := time.Duration(kc.NodeLeaseDurationSeconds) * time.Second
	return Config{
		UserAgent:        userAgent,
		ContentType:      kc.ContentType,
		QPS:              float32(*kc.KubeAPIQPS),
		Burst:            int(kc.KubeAPIBurst),
		EventQPS:         float32(*kc.EventRecordQPS),
		EventBurst:       int(kc.EventBurst),
		HeartbeatTimeout: min(kc.NodeStatusUpdateFrequency.Duration, lease),
	}
}
