package agent

import (
	"fmt"

	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/source"
)

// newSources adds the sources of pods, which send snapshots to out.
func newSources(b *base, a *api, p *pods, out chan<- pod.Snapshot) error {
	deps := source.Deps{
		Out: out, Runtime: p.observer, Clock: b.clock, Log: b.log,
		OnError: func(path string, err error) { a.warnNode("InvalidManifest", fmt.Sprintf("%s: %v", path, err)) },
	}
	if a.local != nil {
		deps.Objects = a.local
	} else {
		deps.API, deps.Ready = a.clients.Kube.CoreV1(), a.caches.Node.WaitSynced
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
