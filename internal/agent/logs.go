package agent

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/logs"
)

// makeLogRotation makes what keeps the logs of containers small.
func (a *Agent) makeLogRotation() error {
	kc := &a.cfg.Kubelet
	size, err := resource.ParseQuantity(kc.ContainerLogMaxSize)
	if err != nil {
		return fmt.Errorf("containerLogMaxSize: %q: %w", kc.ContainerLogMaxSize, err)
	}
	rotator, err := logs.NewRotator(logs.RotateConfig{
		MaxSize:  size.Value(),
		MaxFiles: int(*kc.ContainerLogMaxFiles),
		Workers:  int(*kc.ContainerLogMaxWorkers),
		Interval: kc.ContainerLogMonitorInterval.Duration,
	}, logs.RotateDeps{Containers: func() []logs.Container { return logs.Running(a.pods.observer.List()) }, Reopen: a.cri.ReopenContainerLog, Clock: a.clock, Log: a.log})
	if err != nil {
		return err
	}
	// A container's start and its end change its pod's status.
	a.pods.status.Subscribe(rotator.Poke)
	a.pods.parts = append(a.pods.parts, part{"log rotation", rotator.Run})
	return nil
}
