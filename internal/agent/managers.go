package agent

import (
	"context"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/observe"
	"swiftlet/internal/pluginreg"
	"swiftlet/internal/podsync"
	"swiftlet/internal/resource/allocation"
	"swiftlet/internal/resource/device"
	"swiftlet/internal/resource/dra"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/userns"
	"swiftlet/internal/runtime"
)

// newManagers makes the resource managers.
func newManagers(b *base, a *api, m *machine, observer *observe.Observer) (_ *podsync.Managers, err error) {
	all := &podsync.Managers{CPUs: m.cpus, Memory: m.memory, ReportHealth: b.cfg.Features.ResourceHealthStatus, Log: b.log}
	all.Devices, err = device.New(device.Config{
		Dir:   filepath.Join(b.cfg.Flags.RootDir, "device-plugins"),
		Nodes: m.Layout.All,
	}, device.Deps{
		Running: observer.Running,
		Wake:    b.hub.syncPod.Publish,
		Changed: b.hub.reportNode,
		Events:  a.events,
		Meters:  b.metrics.Devices(),
		Clock:   b.clock,
		Log:     b.log,
	})
	if err != nil {
		return nil, err
	}
	aligner, err := numa.ConfigFrom(b.cfg, m.Layout)
	if err != nil {
		return nil, err
	}
	all.Aligner, err = numa.New(aligner, numa.Deps{
		Providers: []numa.Provider{all.Devices, m.cpus, m.memory},
		Meters:    m.meters.Align,
		Clock:     b.clock,
		Log:       b.log,
	})
	if err != nil {
		return nil, err
	}
	claims := dra.Deps{Wake: b.hub.syncPod.Publish, Events: a.events, Meters: b.metrics.Claims(), Clock: b.clock, Log: b.log}
	if c := a.clients; c != nil {
		if claims.API, err = kubeapi.NewResourceClaims(c.Kube, b.nodeName); err != nil {
			return nil, err
		}
	}
	if all.Claims, err = dra.New(dra.ConfigFrom(b.cfg), claims); err != nil {
		return nil, err
	}
	b.add("device plugins", all.Devices.Run)
	b.add("claims", all.Claims.Run)
	return all, nil
}

// newUserNamespaces makes what gives pods user namespaces of their own.
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

// allocations are the resources of pods across restarts of the agent, where the reference
// kubelet keeps them.
type allocations struct {
	allocated, actuated *allocation.State
}

func openAllocations(b *base) (s allocations, err error) {
	if s.allocated, err = allocation.Open(filepath.Join(b.cfg.Flags.RootDir, allocation.Allocated)); err != nil {
		return s, err
	}
	s.actuated, err = allocation.Open(filepath.Join(b.cfg.Flags.RootDir, allocation.Actuated))
	return s, err
}

// housekeep drops what is stored of pods that went while no agent ran, too.
func (s allocations) housekeep(known func(types.UID) bool, keeper *podsync.Keeper) func(context.Context) {
	return func(ctx context.Context) {
		s.allocated.Retain(known)
		s.actuated.Retain(known)
		keeper.Poke(ctx)
	}
}

// newPluginRegistry makes the registry of programs that extend the node.
func newPluginRegistry(b *base, p *pods) (*pluginreg.Registry, error) {
	registry, err := pluginreg.New(
		pluginreg.Config{Dir: filepath.Join(b.cfg.Flags.RootDir, "plugins_registry")},
		pluginreg.Deps{Handlers: map[string]pluginreg.Handler{
			"CSIPlugin": p.csi, "DevicePlugin": p.managers.Devices, "DRAPlugin": p.managers.Claims,
		}, Clock: b.clock, Log: b.log})
	if err != nil {
		return nil, err
	}
	b.add("plugins", registry.Run)
	return registry, nil
}

// kernel is what limits containers.
func (m *machine) kernel() runtime.Kernel {
	return runtime.Kernel{
		CgroupVersion: m.cgroups.Version(), LimitsSwap: m.cgroups.BoundsSwap(),
		MemoryBytes: m.facts.MemoryBytes, SwapBytes: m.facts.SwapBytes, PodMemory: m.podMemory, SELinux: m.selinux,
	}
}

// place is the part of the machine that a container runs on.
func (m *machine) place(p *v1.Pod, c *v1.Container) runtime.Place {
	return runtime.Place{CPUs: m.cpus.Of(p.UID, c.Name).String(), Memory: m.memory.Of(p.UID, c.Name), Alone: m.cpus.Alone(p, c)}
}

// pinning keeps running containers on their CPUs; none where all CPUs are shared.
func (m *machine) pinning(r runtimeClient) podsync.Pinning {
	if !m.cpus.Binds() {
		return podsync.Pinning{}
	}
	return podsync.Pinning{
		CPUs: func(uid types.UID, container string) string { return m.cpus.Of(uid, container).String() },
		Pin: func(ctx context.Context, id, cpus string) error {
			return r.cri.UpdateContainerResources(ctx, id, &runtimeapi.LinuxContainerResources{CpusetCpus: cpus})
		},
	}
}
