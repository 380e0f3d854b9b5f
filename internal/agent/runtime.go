package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
)

// dialRuntime connects to the container runtime and waits for its first answer: without
// it neither the cgroup driver nor what runs already is known.
func (a *Agent) dialRuntime(ctx context.Context) error {
	kc := &a.cfg.Kubelet
	called, subscribed := a.metrics.CRI()
	cfg := cri.Config{
		RuntimeEndpoint: kc.ContainerRuntimeEndpoint,
		ImageEndpoint:   kc.ImageServiceEndpoint,
		RequestTimeout:  kc.RuntimeRequestTimeout.Duration,
		Called:          called,
		Subscribed:      subscribed,
	}
	if a.tracing != nil {
		cfg.Follow = a.tracing.CRI()
	}
	client, err := cri.Dial(cfg)
	if err != nil {
		return err
	}
	a.cri = client
	told := false
	for {
		version, err := client.Version(ctx)
		if err == nil {
			a.machine.runtimeName = version.RuntimeName
			a.log.Info("container runtime", "name", version.RuntimeName, "version", version.RuntimeVersion)
			return a.askDriver(ctx)
		}
		if !told {
			a.log.Warn("waiting for the container runtime", "endpoint", kc.ContainerRuntimeEndpoint, "err", err)
			told = true
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the container runtime: %w", ctx.Err())
		case <-a.clock.After(250 * time.Millisecond):
		}
	}
}

// askDriver takes the cgroup driver from the runtime where it says: two that disagree
// break every pod.
func (a *Agent) askDriver(ctx context.Context) error {
	a.machine.cgroupDriver = a.cfg.Kubelet.CgroupDriver
	answer, err := a.cri.RuntimeConfig(ctx)
	switch {
	case cri.IsUnimplemented(err):
		return nil
	case err != nil:
		return fmt.Errorf("ask for the cgroup driver: %w", err)
	}
	driver := strings.ToLower(runtimeapi.CgroupDriver_name[int32(answer.GetLinux().GetCgroupDriver())])
	if answer.GetLinux() != nil && driver != a.machine.cgroupDriver {
		a.log.Info("cgroup driver taken from the runtime", "driver", driver, "configured", a.machine.cgroupDriver)
		a.machine.cgroupDriver = driver
	}
	return nil
}
