package agent

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/logs"
	"swiftlet/internal/pod"
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
	}, logs.RotateDeps{Containers: a.logging, Reopen: a.cri.ReopenContainerLog, Clock: a.clock, Log: a.log})
	if err != nil {
		return err
	}
	// A container's start and its end change its pod's status.
	a.pods.status.Subscribe(rotator.Poke)
	a.pods.parts = append(a.pods.parts, part{"log rotation", rotator.Run})
	return nil
}

// logging are the containers that may write to a log.
func (a *Agent) logging() []logs.Container {
	var all []logs.Container
	for _, o := range a.pods.observer.List() {
		for _, c := range o.Containers {
			if c.State == pod.Running {
				all = append(all, logs.Container{ID: c.ID, Log: c.LogPath})
			}
		}
	}
	return all
}
