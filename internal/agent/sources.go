package agent

import (
	"context"
	"fmt"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/source"
)

// httpTimeout bounds one look at a manifest URL.
const httpTimeout = 10 * time.Second

// sourceNames are the sources that must have spoken before anything is called unwanted.
func (a *Agent) sourceNames() []pod.Source {
	var names []pod.Source
	if a.cfg.Kubelet.StaticPodPath != "" {
		names = append(names, pod.SourceFile)
	}
	if a.cfg.Kubelet.StaticPodURL != "" {
		names = append(names, pod.SourceHTTP)
	}
	if a.api.clients != nil {
		names = append(names, pod.SourceAPI)
	}
	return names
}

// dialect is how this node reads a pod.
func (a *Agent) dialect() pod.Dialect {
	f := a.cfg.Features
	return pod.Dialect{
		RestartRules: f.ContainerRestartRules,
		EnvFiles:     f.EnvFiles,
		EmptyDirMode: f.EmptyDirVolumeMode,
		FileUsers:    f.AtomicWriteVolumeUserFields,
		HTTP2Probes:  f.H2CContainerProbe,
		GRPCTLS:      f.GRPCContainerProbeTLS,
	}
}

func (a *Agent) makeSources() error {
	kc := &a.cfg.Kubelet
	if kc.StaticPodPath != "" {
		deps := source.FileDeps{Out: a.pods.snapshots, Clock: a.clock, Log: a.log, BadFile: a.badManifest}
		cfg := source.FileConfig{Path: kc.StaticPodPath, NodeName: a.name, CheckFrequency: kc.FileCheckFrequency.Duration}
		if a.api.local != nil {
			deps.Objects = a.api.local
			cfg.Extensions = []string{".yaml", ".yml", ".json"}
		}
		files, err := source.NewFile(cfg, deps)
		if err != nil {
			return err
		}
		a.pods.parts = append(a.pods.parts, part{"file source", files.Run})
	}
	if kc.StaticPodURL != "" {
		header := http.Header{}
		for name, values := range kc.StaticPodURLHeader {
			header[http.CanonicalHeaderKey(name)] = values
		}
		web, err := source.NewHTTP(
			source.HTTPConfig{URL: kc.StaticPodURL, Header: header, NodeName: a.name, CheckFrequency: kc.HTTPCheckFrequency.Duration},
			source.HTTPDeps{Out: a.pods.snapshots, Client: &http.Client{Timeout: httpTimeout}, Clock: a.clock, Log: a.log, BadFile: a.badManifest})
		if err != nil {
			return err
		}
		a.pods.parts = append(a.pods.parts, part{"URL source", web.Run})
	}
	if a.api.clients != nil {
		api, err := source.NewAPI(source.APIConfig{NodeName: a.name},
			source.APIDeps{Out: a.pods.snapshots, Client: a.api.clients.Kube.CoreV1(), Log: a.log, Ready: a.nodeKnown})
		if err != nil {
			return err
		}
		nodeChanged := notify.New()
		a.api.node.OnChange(nodeChanged.Notify)
		a.pods.parts = append(a.pods.parts, part{"API source", api.Run},
			part{"mirror pods", func(ctx context.Context) error { return a.syncStaticPods(ctx, nodeChanged) }})
	}
	return nil
}

// badManifest makes a manifest that cannot be used visible where users look.
func (a *Agent) badManifest(path string, err error) {
	a.api.events.Eventf(a.nodeRef(), v1.EventTypeWarning, "InvalidManifest", "%s: %v", path, err)
}

// nodeKnown waits for the Node: until its labels are known, no pod can be judged.
func (a *Agent) nodeKnown(ctx context.Context) error {
	select {
	case <-a.api.node.Synced():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the node to be known: %w", ctx.Err())
	}
}

// syncStaticPods has static pods synced again once the Node is known, for it owns their mirrors.
func (a *Agent) syncStaticPods(ctx context.Context, nodeChanged notify.Signal) error {
	for {
		if _, known := a.nodeUID(); known {
			break
		}
		select {
		case <-nodeChanged:
		case <-ctx.Done():
			return nil
		}
	}
	for _, p := range a.pods.desired.List() {
		if pod.IsStatic(p) {
			a.pods.workers.Wake(p.UID)
		}
	}
	return nil
}
