package agent

import (
	"context"

	authv1 "k8s.io/api/authentication/v1"

	"swiftlet/internal/image"
	"swiftlet/internal/image/credentialplugin"
	"swiftlet/internal/observe"
)

// images pulls and removes images.
type images struct {
	puller    *image.Puller
	collector *image.Collector
}

func newImages(b *base, a *api, r runtimeClient, observer *observe.Observer, plugins *credentialplugin.Plugins) (i images, err error) {
	i.collector, err = image.NewCollector(image.CollectorConfigFrom(&b.cfg.Kubelet), image.CollectorDeps{
		Images:    r.cri,
		InUse:     image.InUse(r.cri, observer.List),
		Events:    a.events,
		Node:      a.node,
		Collected: b.metrics.ImagesCollected(),
		Clock:     b.clock,
		Log:       b.log,
	})
	if err != nil {
		return i, err
	}
	finder := image.FinderDeps{Secrets: a.objects, Events: a.events, Log: b.log}
	if plugins != nil {
		finder.Plugins = plugins
	}
	credentials, err := image.NewCredentialFinder(b.cfg.Flags.RootDir, finder)
	if err != nil {
		return i, err
	}
	i.puller, err = image.New(image.ConfigFrom(b.cfg), image.Deps{
		Images: r.cri, Credentials: credentials.Find, Handed: i.collector.Handed, Fetched: i.collector.Pulled,
		Events: a.events, Meters: b.metrics.Image(), Clock: b.clock, Log: b.log,
	})
	i.collector.OnCollected(i.puller.Forget)
	return i, b.addUnless(err, "image garbage collection", i.collector.Run)
}

// newCredentialPlugins finds the credential provider plugins; nil where none are configured.
func newCredentialPlugins(b *base, a *api) (*credentialplugin.Plugins, error) {
	cfg, configured := credentialplugin.ConfigFrom(b.cfg)
	if !configured {
		return nil, nil
	}
	return credentialplugin.New(cfg, credentialplugin.Deps{
		Account: a.tokens.Account,
		Token: func(ctx context.Context, namespace, account string, request *authv1.TokenRequest) (string, error) {
			token, err := a.tokens.Get(ctx, namespace, account, request)
			return token.Value, err
		},
		Meters: b.metrics.CredentialPlugins(),
		Clock:  b.clock,
		Log:    b.log,
	})
}
