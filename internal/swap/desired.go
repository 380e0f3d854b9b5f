package swap

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/certificate"
	"swiftlet/internal/config"
	"swiftlet/internal/desired"
	"swiftlet/internal/host"
	"swiftlet/internal/kubeapi"
	"swiftlet/internal/pod"
	"swiftlet/internal/source"
)

// sourceTimeout limits the wait for the pods of the sources.
const sourceTimeout = 10 * time.Second

// desiredPods reads every source of pods once, as the kubelet does at its start.
func desiredPods(ctx context.Context, cfg *config.Config) (*desired.Pods, error) {
	name, err := host.Hostname(cfg.Flags.HostnameOverride)
	if err != nil {
		return nil, err
	}
	standalone := cfg.Flags.Kubeconfig == ""
	pods, err := desired.New(desired.Config{
		Sources: source.NamesFrom(&cfg.Kubelet, standalone), Fields: pod.NewGatedFields(cfg.Gate),
	}, desired.Deps{Clock: clock.RealClock{}})
	if err != nil {
		return nil, err
	}
	snapshots := make(chan pod.Snapshot)
	deps := source.Deps{Out: snapshots, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), Warn: func(string, string) {}}
	if standalone {
		deps.Objects = ignoreObjects{}
	} else {
		clients, err := apiServer(cfg)
		if err != nil {
			return nil, err
		}
		defer clients.CloseConnections()
		deps.API = clients.Kube
	}
	sources, err := source.New(&cfg.Kubelet, name, deps)
	if err != nil {
		return nil, err
	}
	return pods, readOnce(ctx, sources, snapshots, pods)
}

// readOnce runs the sources until each has sent a snapshot.
func readOnce(ctx context.Context, sources []source.Source, snapshots <-chan pod.Snapshot, pods *desired.Pods) error {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	missing := map[pod.Source]bool{}
	for _, s := range sources {
		missing[s.Name] = true
		running.Go(func() { _ = s.Run(ctx) }) // an error is a missing snapshot
	}
	for len(missing) > 0 {
		select {
		case s := <-snapshots:
			pods.Apply(s)
			delete(missing, s.Source)
		case <-ctx.Done():
			for name := range missing {
				return fmt.Errorf("read pods: no answer from source %s within %s", name, sourceTimeout)
			}
		}
	}
	return nil
}

// apiServer returns clients with the certificate that the running kubelet uses.
func apiServer(cfg *config.Config) (*kubeapi.Clients, error) {
	files, server, err := certificate.NewClientFiles(cfg.Flags.Kubeconfig, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	settings := kubeapi.ConfigFrom(&cfg.Kubelet, "")
	if files != nil {
		settings.Certificate = files
	}
	return kubeapi.NewClients(server, settings)
}

// ignoreObjects ignores the ConfigMaps and Secrets of manifests.
type ignoreObjects struct{}

func (ignoreObjects) SetObjects([]*v1.ConfigMap, []*v1.Secret) {}
