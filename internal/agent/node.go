package agent

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/host"
	"swiftlet/internal/node"
)

// newNode adds the part that registers the node and reports its status.
func newNode(b *base, a *api, r runtimeClient, m *machine, p *pods) error {
	deps := node.Deps{
		Runtime: r.cri, PLEGHealthy: p.observer.Healthy, SetPodCIDR: r.cri.UpdateRuntimeConfig,
		ReadyChecks: []func() error{p.shutdown.ReadyCheck}, Pressures: p.evictor.Conditions, Devices: p.managers.Devices.Amounts,
		AddressesChanged: a.serving.RequestFor(b.nodeName, b.cfg.Features.AllowDNSOnlyNodeCSR), EnforceReserved: m.cgroups.EnforceReserved,
		Meters: b.metrics.Node(b.nodeName, b.started, host.BootTime(b.started)),
		Events: a.events, Jitter: b.around.Random, Clock: b.clock, Log: b.log,
	}
	if *b.cfg.Kubelet.CgroupsPerQOS {
		deps.EnforceAllocatable = m.cgroups.EnsureNode
	}
	if c := a.clients; c != nil {
		deps.Client, deps.Heartbeat, deps.Watched, deps.OnRepeatedHeartbeatFailure = c.Kube, c.Heartbeat, a.caches.Node.Watched, c.CloseConnections
		deps.VolumesInUse = func() ([]v1.UniqueVolumeName, bool) { return m.attachments.Merge(p.volumes.InUse()) }
		deps.VolumesReported = m.attachments.Reported
	}
	n, err := node.New(m.node, deps)
	b.hub.nodeStatus.Subscribe(func(struct{}) { n.Notify() })
	b.hub.apiServerBack.Subscribe(func(struct{}) { n.Retry() })
	if a.caches != nil {
		a.caches.Node.OnRelist(n.Relisted)
	}
	return b.addUnless(err, "node", n.Run)
}
