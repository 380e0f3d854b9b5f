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
)

// Config says which plugins there are.
type Config struct {
	// File is the configuration, or a directory of such files.
	File string
	// Dir holds the plugins' programs.
	Dir string
	// Tokens lets plugins have tokens of service accounts
	// (KubeletServiceAccountTokenForCredentialProviders).
	Tokens bool
}

// Deps are the plugins' surroundings. Account and Token are asked for plugins that want
// tokens; Clock and Log are always needed.
type Deps struct {
	Account func(ctx context.Context, namespace, name string) (*v1.ServiceAccount, error)
	Token   func(ctx context.Context, namespace, account string, request *authv1.TokenRequest) (string, error)
	Meters  Meters
	Clock   clock.PassiveClock
	Log     *slog.Logger
}

// Meters measure the plugins; each may be nil.
type Meters struct {
	// Ran takes how long each run of a plugin took, Failed counts those that failed.
	Ran    meter.TimingOf
	Failed meter.CountOf
	// Configured is told once what the configuration's files amount to.
	Configured func(hash string)
}

// Plugins are all plugins of the node. They may be asked from any goroutine.
type Plugins struct {
	list []*plugin
	log  *slog.Logger
}

// New reads the configuration and finds the programs; it needs no running.
func New(cfg Config, deps Deps) (*Plugins, error) {
	if deps.Clock == nil || deps.Log == nil || cfg.Tokens && (deps.Account == nil || deps.Token == nil) {
		return nil, errors.New("new credential plugins: clock, log and the service accounts are needed")
	}
	read, err := Read(cfg.File, cfg.Tokens)
	if err != nil {
		return nil, err
	}
	programs, err := read.Programs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	all := &Plugins{log: deps.Log}
	for i, p := range read.Providers {
		all.list = append(all.list, &plugin{
			CredentialProvider: p, program: programs[i], timeout: time.Minute, deps: deps,
			flights: flights{current: map[flightKey]*flight{}},
			cache:   cache{kept: map[cacheKey]keptAnswer{}},
		})
	}
	meter.With(deps.Meters.Configured, read.Hash)
	return all, nil
}

// Programs finds the plugins' programs, in the order of the providers.
func (s Settings) Programs(dir string) ([]string, error) {
	var found []string
	var missing []error
	for _, p := range s.Providers {
		program, err := exec.LookPath(filepath.Join(dir, p.Name))
		if err != nil {
			missing = append(missing, fmt.Errorf("find program of credential plugin %s: %w", p.Name, err))
		}
		found = append(found, program)
	}
	return found, errors.Join(missing...)
}

// Credentials asks every plugin that handles the repository on behalf of a pod. One that
// fails is passed over: others may know better, and the image may need none.
func (a *Plugins) Credentials(ctx context.Context, of *v1.Pod, repository string) []image.Credential {
	found := &image.Keyring{}
	for _, p := range a.list {
		if !p.handles(repository) {
			continue
		}
		answer, err := p.ask(ctx, of, repository)
		if err != nil {
			a.log.Error("a credential plugin failed", "plugin", p.Name, "image", repository,
				"pod", of.Namespace+"/"+of.Name, "serviceAccount", of.Spec.ServiceAccountName, "err", err)
			continue
		}
		found.AddFromPlugin(answer.auth, answer.account)
	}
	return found.Lookup(repository)
}
