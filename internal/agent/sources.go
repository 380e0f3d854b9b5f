package agent

import (
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/source"
)

// newSources adds the sources of pods, which send snapshots to out.
func newSources(b *base, a *api, p *pods, out chan<- pod.Snapshot) error {
	deps := source.Deps{Out: out, Runtime: p.observer, Warn: a.warnNode, NewWatcher: b.around.NewWatcher, Clock: b.clock, Log: b.log}
	if a.local != nil {
		deps.Objects = a.local
	} else {
		deps.API, deps.LastKnown, deps.Ready = a.clients.Kube, a.clients.LastKnown, a.caches.Node.WaitSynced
	}
	all, err := source.New(&b.cfg.Kubelet, b.nodeName, deps)
	if err != nil {
		return err
	}
	for _, one := range all {
		b.add(string(one.Name)+" source", one.Run)
	}
	if p.mirrors == nil {
		return nil
	}
	nodeChanged := notify.New()
	a.caches.Node.OnChange(nodeChanged.Notify)
	b.add("mirror pods", p.mirrors.SyncWhenOwned(p.desired, nodeChanged, p.workers.Wake))
	return nil
}
