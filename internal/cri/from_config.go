package cri

import kubelet "k8s.io/kubelet/config/v1beta1"

// ConfigFrom reads the endpoints of the configuration.
func ConfigFrom(kc *kubelet.KubeletConfiguration) Config {
	return Config{
		RuntimeEndpoint: kc.ContainerRuntimeEndpoint,
		ImageEndpoint:   kc.ImageServiceEndpoint,
		RequestTimeout:  kc.RuntimeRequestTimeout.Duration,
	}
}
