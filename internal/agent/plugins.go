package agent

import (
	"context"
	"path/filepath"
	"time"

	"swiftlet/internal/pluginreg"
	"swiftlet/internal/volume/csi"
	"swiftlet/internal/volume/mounts"
)

// makeCSI makes the kind of volumes that drivers bring up.
func (a *Agent) makeCSI() (err error) {
	deps := csi.Deps{
		Mounts:     &mounts.Kernel{},
		Clock:      a.clock,
		Log:        a.log,
		Registered: func(string) { a.pods.volumes.Retry(); a.pods.keeper.Retry() },
		Called:     a.metrics.CSI(),
	}
	if c := a.api.clients; c != nil {
		deps.Client, deps.Drivers, deps.Tokens = c.Kube, a.api.drivers.Get, a.api.tokens
	}
	if a.pods.csi, err = csi.New(csi.Config{RootDir: a.cfg.Flags.RootDir, NodeName: a.name}, deps); err != nil {
		return err
	}
	if a.api.drivers != nil {
		// What is said of a driver may be what volumes wait for.
		a.api.drivers.OnChange(func() { a.pods.csi.Look(); a.pods.volumes.Retry() })
	}
	return nil
}

// makePlugins makes the registry of programs that extend the node.
func (a *Agent) makePlugins() error {
	var err error
	a.pods.plugins, err = pluginreg.New(
		pluginreg.Config{Dir: filepath.Join(a.cfg.Flags.RootDir, "plugins_registry")},
		pluginreg.Deps{Handlers: map[string]pluginreg.Handler{"CSIPlugin": a.pods.csi, "DevicePlugin": a.pods.devices, "DRAPlugin": a.pods.claims}, Clock: a.clock, Log: a.log})
	if err != nil {
		return err
	}
	a.pods.parts = append(a.pods.parts, part{"plugins", a.pods.plugins.Run}, part{"CSI volumes", a.pods.csi.Run}, part{"device plugins", a.pods.devices.Run}, part{"claims", a.pods.claims.Run})
	if a.api.clients != nil {
		a.pods.parts = append(a.pods.parts, part{"CSI node", a.announceCSI})
	}
	return nil
}

// announceRetry is how long to wait before the cluster is told again.
const announceRetry = 5 * time.Second

// announceCSI tells the cluster, once the Node exists, that it can have CSI drivers.
func (a *Agent) announceCSI(ctx context.Context) error {
	select {
	case <-a.machine.node.Registered():
	case <-ctx.Done():
		return nil
	}
	for ctx.Err() == nil {
		err := a.pods.csi.Announce(ctx)
		if err == nil {
			break
		}
		a.log.Warn("the cluster does not know yet that the node can have CSI drivers", "err", err)
		select {
		case <-a.clock.After(announceRetry):
		case <-ctx.Done():
		}
	}
	<-ctx.Done()
	return nil
}
