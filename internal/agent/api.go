package agent

import (
	"math/rand/v2"

	nodev1 "k8s.io/api/node/v1"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/certificate"
	"swiftlet/internal/kubeapi"
	"swiftlet/internal/volume"
)

// objects are the ConfigMaps and Secrets that pods use, wherever they come from.
type objects interface {
	volume.Objects
	Register(*v1.Pod)
	Unregister(*v1.Pod)
}

// api is the way to the API server, or what a node without one has instead.
type api struct {
	objects objects
	local   *kubeapi.Local // nil with an API server
	tokens  *kubeapi.Tokens
	events  *kubeapi.Recorder
	node    *v1.ObjectReference // of events about the node

	// Both are nil without an API server.
	clients *kubeapi.Clients
	caches  *kubeapi.Caches
	serving *certificate.Rotator // nil unless serverTLSBootstrap is set
}

// newAPI makes the clients and the caches of what pods on this node use.
func newAPI(b *base) (*api, error) {
	a := &api{node: kubeapi.NodeRef(b.nodeName)}
	if b.cfg.Flags.Kubeconfig == "" {
		b.log.Info("no kubeconfig: running without a control plane")
		return a, a.standAlone(b)
	}
	clients, rotator, err := newClients(b)
	if err != nil {
		return nil, err
	}
	a.clients = clients
	if err := a.makeShared(b, kubeapi.TokensDeps{Client: clients.Kube}, kubeapi.RecorderDeps{Client: clients.Events}); err != nil {
		return nil, err
	}
	if rotator != nil {
		a.renewClientCertificate(b, rotator)
	}
	a.caches, err = kubeapi.NewCaches(clients.Kube, kubeapi.CachesConfig{
		NodeName: b.nodeName, Strategy: kubeapi.Strategy(b.cfg.Kubelet.ConfigMapAndSecretChangeDetectionStrategy),
	}, kubeapi.ObjectsDeps{Clock: b.clock, Log: b.log}, kubeapi.PodCertificatesDeps{Events: a.events, Clock: b.clock, Jitter: rand.Float64})
	if err != nil {
		return nil, err
	}
	a.objects = a.caches.Objects
	b.add("caches", a.caches.Run)
	return a, a.makeServingCertificate(b)
}

// standAlone makes what a node without an API server has.
func (a *api) standAlone(b *base) error {
	if b.cfg.Kubelet.ServerTLSBootstrap {
		b.log.Warn("serverTLSBootstrap has no effect: there is no API server to issue a certificate")
	}
	a.local = kubeapi.NewLocal()
	a.objects = a.local
	return a.makeShared(b, kubeapi.TokensDeps{}, kubeapi.RecorderDeps{})
}

// makeShared makes what a node has with and without an API server.
func (a *api) makeShared(b *base, tokens kubeapi.TokensDeps, events kubeapi.RecorderDeps) (err error) {
	tokens.Clock, tokens.Log = b.clock, b.log
	if a.tokens, err = kubeapi.NewTokens(tokens); err != nil {
		return err
	}
	events.Clock, events.Log = b.clock, b.log
	a.events, err = kubeapi.NewRecorder(kubeapi.RecorderConfig{Component: "kubelet", Host: b.nodeName}, events)
	b.add("events", a.events.Run)
	return err
}

// warnNode records an event about the node that an administrator should see.
func (a *api) warnNode(reason, message string) {
	a.events.Eventf(a.node, v1.EventTypeWarning, reason, "%s", message)
}

// env is where environment variables of containers come from.
func (a *api) env() kubeapi.EnvSources {
	sources := kubeapi.EnvSources{ObjectGetter: a.objects}
	if a.caches != nil {
		sources.List = a.caches.Services
	}
	return sources
}

// runtimeClass finds a runtime class; nil without an API server.
func (a *api) runtimeClass() func(name string) (*nodev1.RuntimeClass, error) {
	if a.caches == nil {
		return nil
	}
	return a.caches.Classes.Get
}
