package agent

import (
	"context"

	authv1 "k8s.io/api/authentication/v1"

	"swiftlet/internal/image"
	"swiftlet/internal/image/credentialplugin"
)

// makeCredentialPlugins finds the programs that know credentials, where there are any.
func (a *Agent) makeCredentialPlugins(context.Context) (err error) {
	flags := &a.cfg.Flags
	if flags.ImageCredentialProviderConfig == "" {
		return nil
	}
	a.api.plugins, err = credentialplugin.New(credentialplugin.Config{
		File:   flags.ImageCredentialProviderConfig,
		Dir:    flags.ImageCredentialProviderBinDir,
		Tokens: a.cfg.Features.KubeletServiceAccountTokenForCredentialProviders,
	}, credentialplugin.Deps{
		Account: a.api.tokens.Account,
		Token: func(ctx context.Context, namespace, account string, request *authv1.TokenRequest) (string, error) {
			token, err := a.api.tokens.Get(ctx, namespace, account, request)
			return token.Value, err
		},
		Meters: a.metrics.CredentialPlugins(),
		Clock:  a.clock,
		Log:    a.log,
	})
	return err
}

// newCredentialFinder makes what finds credentials for pulls.
func (a *Agent) newCredentialFinder() (*image.CredentialFinder, error) {
	deps := image.FinderDeps{Secrets: a.api.objects, Events: a.api.events, Log: a.log}
	if a.api.plugins != nil {
		deps.Plugins = a.api.plugins
	}
	return image.NewCredentialFinder(a.cfg.Flags.RootDir, deps)
}
