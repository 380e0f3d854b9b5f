package logs

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// RotateConfigFrom reads the log rotation settings of the configuration.
func RotateConfigFrom(kc *kubelet.KubeletConfiguration) (RotateConfig, error) {
	size, err := resource.ParseQuantity(kc.ContainerLogMaxSize)
	if err != nil {
		return RotateConfig{}, fmt.Errorf("containerLogMaxSize: %q: %w", kc.ContainerLogMaxSize, err)
	}
	return RotateConfig{
		MaxSize:  size.Value(),
		MaxFiles: int(*kc.ContainerLogMaxFiles),
		Workers:  int(*kc.ContainerLogMaxWorkers),
		Interval: kc.ContainerLogMonitorInterval.Duration,
	}, nil
}
