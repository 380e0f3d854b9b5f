package agent

import (
	"context"
	"fmt"

	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/source"
)

// newSources adds the sources of pods, which send snapshots to out.
func newSources(b *base, a *api, p *pods, out chan<- pod.Snapshot) error {
	deps := source.Deps{
		Out: out, Clock: b.clock, Log: b.log,
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
	for _, s := range all {
		b.add(string(s.Name)+" source", s.Run)
	}
	if p.mirrors == nil {
		return nil
	}
	nodeChanged := notify.New()
	a.caches.Node.OnChange(nodeChanged.Notify)
	b.add("mirror pods", func(ctx context.Context) error {
		p.mirrors.SyncWhenOwned(ctx, p.desired, nodeChanged, p.workers.Wake)
		return nil
	})
	return nil
}
