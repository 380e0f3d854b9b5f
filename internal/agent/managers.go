package agent

import (
	"path/filepath"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/observe"
	"swiftlet/internal/pluginreg"
	"swiftlet/internal/podsync"
	"swiftlet/internal/resource"
	"swiftlet/internal/resource/userns"
)

// newManagers makes the resource managers.
func newManagers(b *base, a *api, m *machine, observer *observe.Observer) (_ *podsync.Managers, err error) {
	deps := resource.ManagersDeps{
		AwaitPlugins: b.opts.OnlyNode, Running: observer.Running, Sync: b.hub.syncPod.Publish, Changed: b.hub.reportNode, Listen: b.around.Listen, Events: a.events,
		Devices: b.metrics.Devices(), DRA: b.metrics.Claims(), Align: m.meters.Align, Clock: b.clock, Log: b.log,
	}
	if c := a.clients; c != nil {
		if deps.Claims, err = kubeapi.NewResourceClaims(c.Kube, b.nodeName); err != nil {
			return nil, err
		}
	}
	all, err := resource.NewManagers(b.cfg, m.Exclusive, deps)
	if err != nil {
		return nil, err
	}
	b.add("device plugins", all.Devices.Run)
	b.add("claims", all.Claims.Run)
	return &podsync.Managers{Managers: all, ReportHealth: b.cfg.Features.ResourceHealthStatus}, nil
}

// newUserNamespaces makes the allocator of user namespaces.
func newUserNamespaces(b *base) (*userns.Ranges, error) {
	cfg, err := userns.ConfigFrom(b.cfg)
	if err != nil {
		return nil, err
	}
	users, err := userns.New(cfg, b.log)
	if err != nil {
		return nil, err
	}
	b.hub.podRemoved.Subscribe(users.Release)
	return users, nil
}

// newPluginRegistry makes the registry of CSI, device and DRA plugins.
func newPluginRegistry(b *base, s storage, managers *podsync.Managers) (*pluginreg.Registry, error) {
	registry, err := pluginreg.New(
		pluginreg.Config{Dir: filepath.Join(b.cfg.Flags.RootDir, "plugins_registry")},
		pluginreg.Deps{Handlers: map[string]pluginreg.Handler{
			"CSIPlugin": s.csi, "DevicePlugin": managers.Devices, "DRAPlugin": managers.Claims,
		}, NewWatcher: b.around.NewWatcher, Clock: b.clock, Log: b.log})
	return registry, b.addUnless(err, "plugins", registry.Run)
}
