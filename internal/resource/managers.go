package resource

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/config"
	"swiftlet/internal/pod"
	"swiftlet/internal/resource/device"
	"swiftlet/internal/resource/dra"
	"swiftlet/internal/resource/numa"
)

// ManagersDeps are what the managers of devices and resource claims work with.
type ManagersDeps struct {
	// Running reports whether a container runs.
	Running func(pod types.UID, container string) bool
	// Sync has a pod synced again: what it waits for may be there.
	Sync func(types.UID)
	// Changed is called when the node has other devices.
	Changed func()
	// AwaitPlugins is device.Config.AwaitPlugins.
	AwaitPlugins bool
	// Listen is device.Deps.Listen.
	Listen func(ctx context.Context, network, path string) (net.Listener, error)
	// Claims is nil without an API server.
	Claims  dra.API
	Events  pod.Events
	Devices device.Meters
	DRA     dra.Meters
	Align   numa.Meters
	Clock   clock.WithTicker
	Log     *slog.Logger
}

// Managers are the resource managers of the node.
type Managers struct {
	*Exclusive
	Devices *device.Manager
	Claims  *dra.Manager
	Aligner *numa.Aligner
	Log     *slog.Logger
}

// NewManagers makes the managers of what device plugins and DRA drivers bring, and aligns
// that with CPUs and memory. It starts nothing.
func NewManagers(cfg *config.Config, exclusive *Exclusive, deps ManagersDeps) (_ *Managers, err error) {
	m := &Managers{Exclusive: exclusive, Log: deps.Log}
	m.Devices, err = device.New(device.Config{
		Dir:   filepath.Join(cfg.Flags.RootDir, "device-plugins"),
		Nodes: exclusive.Layout.All, AwaitPlugins: deps.AwaitPlugins,
	}, device.Deps{
		Running: deps.Running, Wake: deps.Sync, Changed: deps.Changed, Listen: deps.Listen,
		Events: deps.Events, Meters: deps.Devices, Clock: deps.Clock, Log: deps.Log,
	})
	if err != nil {
		return nil, err
	}
	aligner, err := numa.ConfigFrom(cfg, exclusive.Layout)
	if err != nil {
		return nil, err
	}
	m.Aligner, err = numa.New(aligner, numa.Deps{
		Providers: []numa.Provider{m.Devices, exclusive.CPUs, exclusive.Memory},
		Meters:    deps.Align, Clock: deps.Clock, Log: deps.Log,
	})
	if err != nil {
		return nil, err
	}
	m.Claims, err = dra.New(dra.ConfigFrom(cfg),
		dra.Deps{API: deps.Claims, Wake: deps.Sync, Events: deps.Events, Meters: deps.DRA, Clock: deps.Clock, Log: deps.Log})
	return m, err
}

// Retain releases what pods hold that are not known any more.
func (m *Managers) Retain(ctx context.Context, known func(types.UID) bool) error {
	m.Devices.Retain(known)
	for _, uid := range append(m.CPUs.Pods(), m.Memory.Pods()...) {
		if !known(uid) {
			m.Log.Info("resource managers: releasing resources of a removed pod", "podUID", uid)
			m.Aligner.Release(uid)
		}
	}
	if err := m.Written(ctx); err != nil {
		m.Log.Error("resource managers: write state file after release failed", "err", err)
	}
	return m.Claims.Retain(ctx, known)
}

// Written returns when the allocations so far, and releases of them, are on disk. The sync loop, which allocates, does
// not wait for that; a pod's worker does before it acts.
func (m *Managers) Written(ctx context.Context) error {
	return errors.Join(m.CPUs.Written(ctx), m.Memory.Written(ctx), m.Devices.Written(ctx))
}
