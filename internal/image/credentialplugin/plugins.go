package credentialplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/image"
	"swiftlet/internal/meter"
	"swiftlet/internal/require"
)

// Config says where the plugins are configured and installed.
type Config struct {
	// File is the configuration file, or a directory of such files.
	File string
	// Dir holds the plugins' binaries.
	Dir string
	// Tokens allows plugins to get service account tokens
	// (KubeletServiceAccountTokenForCredentialProviders).
	Tokens bool
}

// Deps are what the plugins work with. Account and Token are required where Config allows
// tokens; Clock and Log always.
type Deps struct {
	Account func(ctx context.Context, namespace, name string) (*v1.ServiceAccount, error)
	Token   func(ctx context.Context, namespace, account string, request *authv1.TokenRequest) (string, error)
	Meters  Meters
	Clock   clock.PassiveClock
	Log     *slog.Logger
}

// Meters measure the plugins; each may be nil.
type Meters struct {
	// Ran times each run of a plugin, Failed counts failed runs.
	Ran    meter.TimingOf
	Failed meter.CountOf
	// Configured is called once with the hash of the configuration files.
	Configured func(hash string)
}

// Plugins are all credential provider plugins of the node. They may be used from any goroutine.
type Plugins struct {
	list []*plugin
	log  *slog.Logger
}

// New reads the configuration and finds the binaries. Plugins have no Run.
func New(cfg Config, deps Deps) (*Plugins, error) {
	required := map[string]any{"Clock": deps.Clock, "Log": deps.Log}
	if cfg.Tokens {
		required["Account"], required["Token"] = deps.Account, deps.Token
	}
	if err := require.Set("new credential plugins", required); err != nil {
		return nil, err
	}
	settings, err := Read(cfg.File, cfg.Tokens)
	if err != nil {
		return nil, err
	}
	programs, err := settings.Programs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	all := &Plugins{log: deps.Log}
	for i, p := range settings.Providers {
		all.list = append(all.list, &plugin{
			CredentialProvider: p, program: programs[i], timeout: time.Minute, deps: deps,
			inFlight: inFlightRequests{byKey: map[requestKey]*inFlightRequest{}},
			cache:    cache{entries: map[cacheKey]cacheEntry{}},
		})
	}
	meter.With(deps.Meters.Configured, settings.Hash)
	return all, nil
}

// Programs returns the paths of the plugins' binaries, in the order of the providers.
func (s Settings) Programs(dir string) ([]string, error) {
	var found []string
	var missing []error
	for _, p := range s.Providers {
		program, err := exec.LookPath(filepath.Join(dir, p.Name))
		if err != nil {
			missing = append(missing, fmt.Errorf("find binary of credential plugin %s: %w", p.Name, err))
		}
		found = append(found, program)
	}
	return found, errors.Join(missing...)
}

// Credentials returns the credentials of every plugin that handles the repository, for a pod. It
// skips a plugin that fails: another may succeed, and the image may need no credentials.
func (a *Plugins) Credentials(ctx context.Context, pod *v1.Pod, repository string) []image.Credential {
	found := &image.Keyring{}
	for _, p := range a.list {
		if !p.handles(repository) {
			continue
		}
		issued, err := p.credentials(ctx, pod, repository)
		if err != nil {
			a.log.Error("credential plugin failed", "plugin", p.Name, "image", repository,
				"pod", pod.Namespace+"/"+pod.Name, "serviceAccount", pod.Spec.ServiceAccountName, "err", err)
			continue
		}
		found.AddFromPlugin(issued.auth, issued.account)
	}
	return found.Lookup(repository)
}
