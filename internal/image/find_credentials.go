package image

import (
	"context"
	"errors"
	"log/slog"
	"os"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Secrets reads the image pull secrets of pods.
type Secrets interface {
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
}

// CredentialPlugins asks credential provider plugins for what opens a repository.
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
	rootDir string // of the kubelet, which may hold the node's credentials
	deps    FinderDeps
}

// NewCredentialFinder validates and starts nothing.
func NewCredentialFinder(rootDir string, deps FinderDeps) (*CredentialFinder, error) {
	if rootDir == "" || deps.Secrets == nil || deps.Events == nil || deps.Log == nil {
		return nil, errors.New("new credential finder: root directory, secrets, events and log are needed")
	}
	return &CredentialFinder{rootDir: rootDir, deps: deps}, nil
}

// Find returns what may open the repository: from the pod's own secrets first, then from the
// node's files, which are read each time because they may be renewed, then from plugins.
func (f *CredentialFinder) Find(ctx context.Context, p *v1.Pod, repository string) ([]Credential, error) {
	own, err := KeyringOf(f.pullSecrets(ctx, p))
	if err != nil {
		return nil, err
	}
	home, _ := os.UserHomeDir() // a service may have none
	node, err := NodeKeyring(f.rootDir, home)
	if err != nil {
		f.deps.Log.Warn("find credentials: cannot read the node's", "err", err)
	}
	found := append(own.Lookup(repository), node.Lookup(repository)...)
	if f.deps.Plugins != nil {
		found = append(found, f.deps.Plugins.Credentials(ctx, p, repository)...)
	}
	return found, nil
}

// pullSecrets reads the pod's image pull secrets. One that cannot be read is left out: the
// image may need no credentials, or the others' may do.
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
