package image

import (
	"context"
	"log/slog"
	"os"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Secrets reads the image pull secrets of pods.
type Secrets interface {
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
}

// CredentialPlugins gets the credentials for a repository from credential provider plugins.
type CredentialPlugins interface {
	Credentials(ctx context.Context, p *v1.Pod, repository string) []Credential
}

// FinderDeps is what a CredentialFinder works with.
type FinderDeps struct {
	Secrets Secrets
	Plugins CredentialPlugins // may be nil
	Events  pod.Events
	Log     *slog.Logger
}

// CredentialFinder finds the credentials that a pod may pull an image with.
type CredentialFinder struct {
	rootDir string // the kubelet's root directory, which may hold the node's credentials
	deps    FinderDeps
}

// NewCredentialFinder validates and starts nothing.
func NewCredentialFinder(rootDir string, deps FinderDeps) (*CredentialFinder, error) {
	if err := require.Set("new credential finder", map[string]any{
		"rootDir": rootDir, "Secrets": deps.Secrets, "Events": deps.Events, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	return &CredentialFinder{rootDir: rootDir, deps: deps}, nil
}

// Find returns the credentials for the repository: first from the pod's pull secrets, then from
// the node's docker configuration, read each time because it may be renewed, then from plugins.
func (f *CredentialFinder) Find(ctx context.Context, p *v1.Pod, repository string) ([]Credential, error) {
	own, err := NewKeyring(f.pullSecrets(ctx, p))
	if err != nil {
		return nil, err
	}
	home, _ := os.UserHomeDir() // a service may have none
	node, err := NodeKeyring(f.rootDir, home)
	if err != nil {
		f.deps.Log.Warn("find image credentials: cannot read node credentials", "err", err)
	}
	found := append(own.Lookup(repository), node.Lookup(repository)...)
	if f.deps.Plugins != nil {
		found = append(found, f.deps.Plugins.Credentials(ctx, p, repository)...)
	}
	return found, nil
}

// pullSecrets reads the pod's image pull secrets. It skips those that it cannot read: the image
// may need no credentials, or another secret may suffice.
func (f *CredentialFinder) pullSecrets(ctx context.Context, p *v1.Pod) []*v1.Secret {
	var secrets []*v1.Secret
	for _, ref := range p.Spec.ImagePullSecrets {
		if ref.Name == "" {
			continue
		}
		secret, err := f.deps.Secrets.Secret(ctx, p.Namespace, ref.Name)
		if err != nil {
			f.deps.Events.Eventf(p, v1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
				"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", ref.Name)
			continue
		}
		secrets = append(secrets, secret)
	}
	return secrets
}
