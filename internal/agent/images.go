package agent

import (
	"swiftlet/internal/image"
	"swiftlet/internal/image/credentialplugin"
	"swiftlet/internal/observe"
)

// newImages makes the image manager, and adds its garbage collection.
func newImages(b *base, a *api, r runtimeClient, observer *observe.Observer, plugins *credentialplugin.Plugins) (image.Manager, error) {
	deps := image.ManagerDeps{
		Runtime: r.cri, Observed: observer.List, Secrets: a.objects, Events: a.events, Node: a.node,
		Meters: b.metrics.Image(), Why: b.why, Collected: b.metrics.ImageGC(), Clock: b.clock, Log: b.log,
	}
	if plugins != nil {
		deps.Plugins = plugins
	}
	m, err := image.NewManager(b.cfg, deps)
	return m, b.addUnless(err, "image garbage collection", m.Collector.Run)
}

// newCredentialPlugins makes the credential provider plugins; nil if none are configured.
func newCredentialPlugins(b *base, a *api) (*credentialplugin.Plugins, error) {
	cfg, configured := credentialplugin.ConfigFrom(b.cfg)
	if !configured {
		return nil, nil
	}
	return credentialplugin.New(cfg, credentialplugin.Deps{
		Account: a.tokens.Account, Token: a.tokens.Value,
		Meters: b.metrics.CredentialPlugins(), Clock: b.clock, Log: b.log,
	})
}
