package source

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/fsnotify/fsnotify"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/pod"
)

// Deps are the dependencies of the configured sources.
type Deps struct {
	Out chan<- pod.Snapshot
	// Objects receives the ConfigMaps and Secrets of manifests. It is set only on a node without an
	// API server.
	Objects Objects
	// Runtime has the pods that run already. Static pods among them keep their UIDs.
	Runtime Runtime
	// API and Ready are nil without an API server. Ready returns when pods may be read.
	API   PodClient
	Ready func(context.Context) error
	// LastKnown keeps the API server's pods; nil: off.
	LastKnown *kubeapi.LastKnown
	// Warn records a warning event about the node: an invalid manifest, or pods that run without the API server.
	Warn func(reason, message string)
	// NewWatcher opens inotify; nil means fsnotify.NewWatcher.
	NewWatcher func() (*fsnotify.Watcher, error)
	Clock      clock.WithTicker
	Log        *slog.Logger
}

// Source sends the pods of one source until its context ends.
type Source struct {
	Name pod.Source
	Run  func(context.Context) error
}

// New returns the configured sources.
func New(kc *kubelet.KubeletConfiguration, nodeName string, deps Deps) ([]Source, error) {
	var all []Source
	invalid := func(path string, err error) { deps.Warn("InvalidManifest", fmt.Sprintf("%s: %v", path, err)) }
	if kc.StaticPodPath != "" {
		cfg := FileConfigFrom(kc, nodeName)
		if deps.Objects != nil {
			cfg.Extensions = []string{".yaml", ".yml", ".json"}
		}
		s, err := NewFile(cfg, FileDeps{
			Out: deps.Out, Objects: deps.Objects, Runtime: deps.Runtime, OnError: invalid, NewWatcher: deps.NewWatcher, Clock: deps.Clock, Log: deps.Log,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, Source{pod.SourceFile, s.Run})
	}
	if kc.StaticPodURL != "" {
		cfg, client := HTTPConfigFrom(kc, nodeName)
		s, err := NewHTTP(cfg, HTTPDeps{Out: deps.Out, Client: client, Runtime: deps.Runtime, OnError: invalid, Clock: deps.Clock, Log: deps.Log})
		if err != nil {
			return nil, err
		}
		all = append(all, Source{pod.SourceHTTP, s.Run})
	}
	if deps.API != nil {
		s, err := NewAPI(APIConfig{NodeName: nodeName}, APIDeps{Out: deps.Out, Client: deps.API, Ready: deps.Ready, LastKnown: deps.LastKnown, Warn: deps.Warn, Clock: deps.Clock, Log: deps.Log})
		if err != nil {
			return nil, err
		}
		all = append(all, Source{pod.SourceAPI, s.Run})
	}
	return all, nil
}
