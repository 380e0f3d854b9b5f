package agent

import (
	"path/filepath"

	"swiftlet/internal/volume"
	"swiftlet/internal/volume/csi"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/quota"
)

// storage has the volumes and their CSI plugin.
type storage struct {
	csi     *csi.Plugin
	volumes *volume.Volumes
}

func newStorage(b *base, a *api, m *machine) (s storage, err error) {
	if s.csi, err = newCSI(b, a, m); err != nil {
		return s, err
	}
	deps := volume.Deps{
		Objects: a.objects, Tokens: a.tokens, Allocatable: m.node.Allocatable, Plugins: []plugin.Plugin{s.csi},
		Mounter: b.around.Mounter, Changed: volume.Changed{Health: b.hub.syncPod.Publish},
		Events: a.events, Panics: b.panics, Meters: b.metrics.Volume(), Why: b.why, Jitter: b.around.Random, Clock: b.clock, Log: b.log,
	}
	if a.clients != nil {
		deps.Trust, deps.Certificates = a.caches.Trust, a.caches.Certificates
		deps.Claims, deps.Node = a.caches.Claims, a.caches.Node.Watched
		deps.Changed.InUse = b.hub.reportNode
	}
	if a.clients != nil && *b.cfg.Kubelet.EnableControllerAttachDetach {
		deps.Attachments = m.attachments
	}
	if b.cfg.Features.LocalStorageCapacityIsolationFSQuotaMonitoring {
		deps.Quotas, err = quota.New(quota.Config{PodsDir: filepath.Join(b.cfg.Flags.RootDir, "pods")}, b.clock, b.log)
		if err != nil {
			return s, err
		}
	}
	if m.selinux {
		deps.Labels = mounts.SELinuxPolicy{}
	}
	s.volumes, err = volume.New(volume.ConfigFrom(b.cfg, b.nodeName, m.selinux), deps)
	s.subscribe(b, a)
	return s, b.addUnless(err, "volumes", s.volumes.Run)
}

// subscribe retries volumes on the events that they may wait for.
func (s storage) subscribe(b *base, a *api) {
	b.hub.volumesReported.Subscribe(func(struct{}) { s.volumes.NodeChanged() })
	b.hub.driverRegistered.Subscribe(func(string) { s.volumes.Retry() })
	if a.caches != nil {
		a.caches.Node.OnChange(s.volumes.NodeChanged)
		a.caches.Drivers.OnChange(func() { s.csi.DriversChanged(); s.volumes.Retry() })
	}
}

// newCSI makes the volume plugin for CSI drivers.
func newCSI(b *base, a *api, m *machine) (*csi.Plugin, error) {
	deps := csi.Deps{
		Mounts: &mounts.Kernel{}, Registered: b.hub.driverRegistered.Publish,
		ObserveCall: b.metrics.CSI(), Clock: b.clock, Log: b.log,
	}
	if c := a.clients; c != nil {
		deps.Client, deps.Drivers, deps.Tokens = c.Kube, a.caches.Drivers.Get, a.tokens
	}
	p, err := csi.New(csi.Config{RootDir: b.cfg.Flags.RootDir, NodeName: b.nodeName, RepublishPeriod: b.cfg.Kubelet.SyncFrequency.Duration}, deps)
	if err != nil {
		return nil, err
	}
	b.add("CSI volumes", p.Run)
	if a.clients != nil {
		b.add("CSI node", p.EnsureCSINodeAfter(m.node.Registered()))
	}
	return p, nil
}
