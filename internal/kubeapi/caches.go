package kubeapi

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	nodev1 "k8s.io/api/node/v1"

	"swiftlet/internal/kubeclient"
)

// CachesConfig says what is cached.
type CachesConfig struct {
	NodeName string
	// Strategy is how changes of ConfigMaps and Secrets are noticed, and Poll how often if they are
	// not watched.
	Strategy Strategy
	Poll     time.Duration
	// LastKnown keeps the objects; nil: off.
	LastKnown *LastKnown
	// Reconnects ends the back-off of watches; may be nil.
	Reconnects *Reconnects
}

// Caches are the API server's objects that pods of this node use.
type Caches struct {
	Objects      *Objects
	Claims       *Claims
	Trust        *TrustBundles
	Services     *Services
	Classes      *RuntimeClasses
	Drivers      *CSIDrivers
	Node         *Node
	Certificates *PodCertificates

	lastKnown *LastKnown // nil: off
}

// NewCaches makes all caches; they are filled by Run. certificates.Client and certificates.Node are not used.
func NewCaches(kube kubeclient.Interface, cfg CachesConfig, objects ObjectsDeps, certificates PodCertificatesDeps) (_ *Caches, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("make caches: %w", err)
		}
	}()
	c := &Caches{lastKnown: cfg.LastKnown}
	if c.Node, err = NewNode(kube, cfg.NodeName); err != nil {
		return nil, err
	}
	objects.LastKnown, objects.Reconnects = cfg.LastKnown, cfg.Reconnects
	if c.Objects, err = NewObjects(ObjectsConfig{Strategy: cfg.Strategy, TTL: c.Node.ObjectTTL, Poll: cfg.Poll}, objects); err != nil {
		return nil, err
	}
	if c.Claims, err = NewClaims(kube); err != nil {
		return nil, err
	}
	if c.Trust, err = NewTrustBundles(kube); err != nil {
		return nil, err
	}
	if c.Services, err = NewServices(kube); err != nil {
		return nil, err
	}
	if c.Classes, err = NewRuntimeClasses(kube); err != nil {
		return nil, err
	}
	if c.Drivers, err = NewCSIDrivers(kube); err != nil {
		return nil, err
	}
	certificates.Client, certificates.Node = kube, c.Node.Watched
	if c.Certificates, err = NewPodCertificates(cfg.NodeName, certificates); err != nil {
		return nil, err
	}
	for _, watched := range []*collection{c.Trust.collection, c.Services.collection, c.Classes.collection, c.Drivers.collection, c.Node.collection} {
		watched.known, watched.back = cfg.LastKnown, cfg.Reconnects
	}
	return c, nil
}

// RuntimeClass returns one runtime class. c may be nil, without an API server: then there is
// none.
func (c *Caches) RuntimeClass(name string) (*nodev1.RuntimeClass, error) {
	if c == nil {
		return nil, fmt.Errorf("runtime class %q: there is no API server to know it", name)
	}
	return c.Classes.Get(name)
}

// Run keeps the caches up to date until ctx is done.
func (c *Caches) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{
		c.Objects.Run, c.Trust.Run, c.Services.Run, c.Classes.Run, c.Drivers.Run, c.Node.Run, c.Certificates.Run, c.lastKnown.Run,
	} {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}
