package agent

import (
	"context"

	"swiftlet/internal/cgroup"
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
	var err error
	if a.cri, err = cri.Dial(cfg); err != nil {
		return err
	}
	if a.machine.runtime, err = a.cri.Identify(ctx, a.clock, a.log); err != nil {
		return err
	}
	a.log.Info("container runtime", "name", a.machine.runtime.Name, "version", a.machine.runtime.Version)
	return nil
}

// cgroupDriver is the runtime's where it says: two that disagree break every pod.
func (a *Agent) cgroupDriver() cgroup.Driver {
	configured, driver := a.cfg.Kubelet.CgroupDriver, a.machine.runtime.CgroupDriver
	if driver == "" {
		return cgroup.Driver(configured)
	}
	if driver != configured {
		a.log.Info("cgroup driver taken from the container runtime", "driver", driver, "configured", configured)
	}
	return cgroup.Driver(driver)
}
