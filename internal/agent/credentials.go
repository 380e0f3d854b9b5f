package agent

import (
	"context"
	"os"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"

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

// credentials finds what opens a repository: a pod's own secrets first, then the node's,
// which are read anew because somebody may renew them, then what plugins say.
func (a *Agent) credentials(ctx context.Context, p *v1.Pod, repository string) ([]image.Credential, error) {
	var secrets []*v1.Secret
	for _, ref := range p.Spec.ImagePullSecrets {
		if ref.Name == "" {
			continue
		}
		secret, err := a.api.objects.Secret(ctx, p.Namespace, ref.Name)
		if err != nil {
			a.api.events.Eventf(p, v1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
				"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", ref.Name)
			continue
		}
		secrets = append(secrets, secret)
	}
	own, err := image.KeyringOf(secrets)
	if err != nil {
		return nil, err
	}
	home, _ := os.UserHomeDir() // a service may have none
	node, err := image.NodeKeyring(a.cfg.Flags.RootDir, home)
	if err != nil {
		a.log.Warn("some of the node's credentials cannot be used", "err", err)
	}
	found := append(own.Lookup(repository), node.Lookup(repository)...)
	if plugins := a.api.plugins; plugins != nil {
		found = append(found, plugins.Credentials(ctx, p, repository)...)
	}
	return found, nil
}
