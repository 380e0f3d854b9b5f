package agent

import (
	"context"
	"fmt"

	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/source"
)

// dialect is how this node reads a pod.
func dialect(b *base) pod.Dialect {
	f := b.cfg.Features
	return pod.Dialect{
		RestartRules: f.ContainerRestartRules,
		EnvFiles:     f.EnvFiles,
		EmptyDirMode: f.EmptyDirVolumeMode,
		FileUsers:    f.AtomicWriteVolumeUserFields,
		HTTP2Probes:  f.H2CContainerProbe,
		GRPCTLS:      f.GRPCContainerProbeTLS,
	}
}

// newSources adds what reads the pods of this node, and sends them to out.
func newSources(b *base, a *api, p *pods, out chan<- pod.Snapshot) error {
	kc := &b.cfg.Kubelet
	invalid := func(path string, err error) { a.warnNode("InvalidManifest", fmt.Sprintf("%s: %v", path, err)) }
	if kc.StaticPodPath != "" {
		deps := source.FileDeps{Out: out, Clock: b.clock, Log: b.log, BadFile: invalid}
		cfg := source.FileConfigFrom(kc, b.nodeName)
		if a.local != nil {
			deps.Objects = a.local
			cfg.Extensions = []string{".yaml", ".yml", ".json"}
		}
		files, err := source.NewFile(cfg, deps)
		if err != nil {
			return err
		}
		b.add("file source", files.Run)
	}
	if kc.StaticPodURL != "" {
		cfg, client := source.HTTPConfigFrom(kc, b.nodeName)
		web, err := source.NewHTTP(cfg, source.HTTPDeps{Out: out, Client: client, Clock: b.clock, Log: b.log, BadFile: invalid})
		if err != nil {
			return err
		}
		b.add("URL source", web.Run)
	}
	if a.clients == nil {
		return nil
	}
	watched, err := source.NewAPI(source.APIConfig{NodeName: b.nodeName},
		source.APIDeps{Out: out, Client: a.clients.Kube.CoreV1(), Log: b.log, Ready: a.watch.WaitSynced})
	if err != nil {
		return err
	}
	b.add("API source", watched.Run)
	nodeChanged := notify.New()
	a.watch.OnChange(nodeChanged.Notify)
	b.add("mirror pods", func(ctx context.Context) error {
		p.mirrors.SyncWhenOwned(ctx, p.desired, nodeChanged, p.workers.Wake)
		return nil
	})
	return nil
}
