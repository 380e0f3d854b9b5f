package agent

import (
	"context"
	"fmt"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/certificate"
	"swiftlet/internal/image/credentialplugin"
	"swiftlet/internal/kubeapi"
	"swiftlet/internal/notify"
	"swiftlet/internal/volume"
)

// objects are the ConfigMaps and Secrets that pods use, wherever they come from.
type objects interface {
	volume.Objects
	Register(*v1.Pod)
	Unregister(*v1.Pod)
}

// api is the way to the API server, or what stands in for it on a node without one.
type api struct {
	clients *kubeapi.Clients // nil without an API server
	objects objects
	local   *kubeapi.Local  // nil with one
	claims  *kubeapi.Claims // nil without an API server
	trust   *kubeapi.TrustBundles
	// certificates are those that pods ask for.
	certificates *kubeapi.PodCertificates
	tokens       *kubeapi.Tokens
	plugins      *credentialplugin.Plugins // nil where none are configured
	services     *kubeapi.Services
	classes      *kubeapi.RuntimeClasses
	drivers      *kubeapi.CSIDrivers
	node         *kubeapi.Node
	events       *kubeapi.Recorder

	certificate *certificate.Rotator // of the client; nil where the node does not keep it
	serving     *certificate.Rotator // nil where the API server does not issue it

	back notify.Signal // the API server answers again

	parts []part
}

// connect makes the clients and the caches of what pods on this node use.
func (a *Agent) connect(context.Context) error {
	if a.cfg.Flags.Kubeconfig == "" {
		a.log.Info("no kubeconfig: running without a control plane")
		return a.standAlone()
	}
	if err := a.makeClients(); err != nil {
		return err
	}
	return a.makeCaches()
}

// makeClients makes the way to the API server, and the certificates that go through it.
func (a *Agent) makeClients() error {
	base, shown, err := a.makeClientCertificate()
	if err != nil {
		return err
	}
	kc := &a.cfg.Kubelet
	a.api.back = notify.New()
	a.api.parts = append(a.api.parts, part{"return of the API server", a.catchUp})
	cfg := kubeapi.Config{
		Certificate:      shown,
		UserAgent:        userAgent,
		ContentType:      kc.ContentType,
		QPS:              float32(*kc.KubeAPIQPS),
		Burst:            int(kc.KubeAPIBurst),
		EventQPS:         float32(*kc.EventRecordQPS),
		EventBurst:       int(kc.EventBurst),
		Back:             a.api.back.Notify,
		HeartbeatTimeout: min(kc.NodeStatusUpdateFrequency.Duration, seconds(kc.NodeLeaseDurationSeconds)),
	}
	if a.tracing != nil {
		cfg.Follow = a.tracing.Transport
	}
	clients, err := kubeapi.NewClients(base, cfg)
	if err != nil {
		return err
	}
	a.api.clients = clients
	return a.makeServingCertificate()
}

// makeCaches makes what remembers the API server's objects.
func (a *Agent) makeCaches() error {
	clients := a.api.clients
	watched, err := kubeapi.NewObjects(
		kubeapi.ObjectsConfig{Strategy: kubeapi.Strategy(a.cfg.Kubelet.ConfigMapAndSecretChangeDetectionStrategy)},
		kubeapi.ObjectsDeps{Client: clients.Kube, Clock: a.clock, Log: a.log})
	if err != nil {
		return err
	}
	a.api.objects = watched
	if a.api.claims, err = kubeapi.NewClaims(clients.Kube); err != nil {
		return err
	}
	if a.api.trust, err = kubeapi.NewTrustBundles(clients.Kube); err != nil {
		return err
	}
	if a.api.services, err = kubeapi.NewServices(clients.Kube); err != nil {
		return err
	}
	if a.api.classes, err = kubeapi.NewRuntimeClasses(clients.Kube); err != nil {
		return err
	}
	if a.api.drivers, err = kubeapi.NewCSIDrivers(clients.Kube); err != nil {
		return err
	}
	if a.api.node, err = kubeapi.NewNode(clients.Kube, a.name); err != nil {
		return err
	}
	if err := a.makeCommon(); err != nil {
		return err
	}
	a.api.certificates, err = kubeapi.NewPodCertificates(a.name, kubeapi.PodCertificatesDeps{
		Client: clients.Kube, Node: a.watchedNode, Events: a.api.events, Clock: a.clock, Jitter: rand.Float64,
	})
	if err != nil {
		return err
	}
	a.api.parts = append(a.api.parts, part{"pod certificates", a.api.certificates.Run},
		part{"objects", watched.Run}, part{"trust bundles", a.api.trust.Run}, part{"services", a.api.services.Run},
		part{"runtime classes", a.api.classes.Run}, part{"node watch", a.api.node.Run},
		part{"CSI drivers", a.api.drivers.Run})
	return nil
}

// standAlone makes what a node without an API server has instead.
func (a *Agent) standAlone() error {
	if a.cfg.Kubelet.ServerTLSBootstrap {
		a.log.Warn("serverTLSBootstrap has no effect: there is no API server to issue a certificate")
	}
	a.api.local = kubeapi.NewLocal()
	a.api.objects = a.api.local
	return a.makeCommon()
}

// makeCommon makes what both ways of running have.
func (a *Agent) makeCommon() (err error) {
	tokens := kubeapi.TokensDeps{Clock: a.clock, Log: a.log}
	events := kubeapi.RecorderDeps{Clock: a.clock, Log: a.log}
	if c := a.api.clients; c != nil {
		tokens.Client, events.Client = c.Kube, c.Events
	}
	if a.api.tokens, err = kubeapi.NewTokens(tokens); err != nil {
		return err
	}
	a.api.events, err = kubeapi.NewRecorder(kubeapi.RecorderConfig{Component: "kubelet", Host: a.name}, events)
	a.api.parts = append(a.api.parts, part{"events", a.api.events.Run})
	return err
}

// nodeRef is what events about the node are attached to.
func (a *Agent) nodeRef() *v1.ObjectReference {
	return &v1.ObjectReference{Kind: "Node", Name: a.name, UID: types.UID(a.name)}
}

// envSources are where environment variables come from.
type envSources struct {
	objects
	services *kubeapi.Services
}

// Services lists a namespace's services; without an API server there are none, and that
// is known.
func (s envSources) Services(namespace string) ([]*v1.Service, bool) {
	if s.services == nil {
		return nil, true
	}
	return s.services.List(namespace), s.services.HasSynced()
}

// watchedNode is the Node as the watch last showed it.
func (a *Agent) watchedNode() (*v1.Node, error) {
	n, err := a.api.node.Get()
	if err != nil {
		return nil, fmt.Errorf("node %s is not known yet: %w", a.name, err)
	}
	return n, nil
}
