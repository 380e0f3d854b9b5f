package agent

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/certificate"
	"swiftlet/internal/kubeapi"
	"swiftlet/internal/volume"
)

// objects are the ConfigMaps and Secrets that pods use, from the API server or local.
type objects interface {
	volume.Objects
	Register(*v1.Pod)
	Unregister(*v1.Pod)
}

// api has the clients and caches of the API server, or what replaces them without one.
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

// newAPI makes the clients, and the caches of the objects that pods on this node use.
func newAPI(b *base) (*api, error) {
	a := &api{node: kubeapi.NodeRef(b.nodeName)}
	if b.cfg.Flags.Kubeconfig == "" {
		b.log.Info("no kubeconfig: running without an API server")
		return a, a.makeStandalone(b)
	}
	clients, rotator, err := newClients(b)
	if err != nil {
		return nil, err
	}
	a.clients = clients
	if err := a.makeShared(b, kubeapi.TokensDeps{Client: clients.Kube}, kubeapi.RecorderDeps{Client: clients.Events}); err != nil {
		return nil, err
	}
	clients.LastKnown.Keep(a.tokens)
	if rotator != nil {
		a.renewClientCertificate(b, rotator)
	}
	reconnects := kubeapi.NewReconnects(b.clock)
	b.hub.apiServerBack.Subscribe(func(struct{}) { reconnects.Notify() })
	a.caches, err = kubeapi.NewCaches(clients.Kube, kubeapi.CachesConfig{
		NodeName: b.nodeName, Strategy: kubeapi.Strategy(b.cfg.Kubelet.ConfigMapAndSecretChangeDetectionStrategy), Poll: b.cfg.Kubelet.SyncFrequency.Duration, LastKnown: clients.LastKnown, Reconnects: reconnects,
	}, kubeapi.ObjectsDeps{Client: clients.Objects, Clock: b.clock, Log: b.log}, kubeapi.PodCertificatesDeps{Events: a.events, Clock: b.clock, Jitter: b.around.Random})
	if err != nil {
		return nil, err
	}
	a.objects = a.caches.Objects
	b.add("caches", a.caches.Run)
	return a, a.makeServingCertificate(b)
}

// makeStandalone makes what replaces the API server.
func (a *api) makeStandalone(b *base) error {
	if b.cfg.Kubelet.ServerTLSBootstrap {
		b.log.Warn("serverTLSBootstrap has no effect: there is no API server to issue a certificate")
	}
	a.local = kubeapi.NewLocal()
	a.objects = a.local
	return a.makeShared(b, kubeapi.TokensDeps{}, kubeapi.RecorderDeps{})
}

// makeShared makes tokens and events, with or without an API server.
func (a *api) makeShared(b *base, tokens kubeapi.TokensDeps, events kubeapi.RecorderDeps) (err error) {
	tokens.Clock, tokens.Log = b.clock, b.log
	if a.tokens, err = kubeapi.NewTokens(tokens); err != nil {
		return err
	}
	events.Clock, events.Log = b.clock, b.log
	a.events, err = kubeapi.NewRecorder(kubeapi.RecorderConfig{Component: "kubelet", Host: b.nodeName, KeepRecent: b.cfg.Flags.EnableUI}, events)
	b.add("events", a.events.Run)
	return err
}

// warnNode records a warning event about the node.
func (a *api) warnNode(reason, message string) {
	a.events.Eventf(a.node, v1.EventTypeWarning, reason, "%s", message)
}
