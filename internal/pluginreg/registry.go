package pluginreg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
	"k8s.io/utils/clock"

	"swiftlet/internal/require"
)

// Plugin is one plugin as it describes itself.
type Plugin struct {
	Type string
	Name string
	// Endpoint is the socket it serves its own protocol on: the registration socket
	// itself where it names no other.
	Endpoint string
	Versions []string
}

// Handler manages plugins of one type. Calls for one socket never overlap; those for different
// sockets may.
type Handler interface {
	// Validate rejects a plugin that cannot be used. The plugin is notified of the error.
	Validate(ctx context.Context, p Plugin) error
	// Register begins to use the plugin. ctx is done when the socket is removed. The plugin
	// is notified of an error, and the registration is retried later.
	Register(ctx context.Context, p Plugin) error
	// Deregister is called after the socket of a registered plugin was removed, and when the
	// plugin could not be notified of its registration. It is not called when the agent ends.
	Deregister(p Plugin)
}

// Config is fixed for the life of the agent.
type Config struct {
	// Dir is the registration directory, ROOT/plugins_registry. Run creates it.
	Dir string
}

// Deps are the dependencies of a Registry.
type Deps struct {
	// Handlers are keyed by the type in a plugin's info, such as CSIPlugin.
	Handlers map[string]Handler
	// NewWatcher opens inotify; nil means fsnotify.NewWatcher.
	NewWatcher func() (*fsnotify.Watcher, error)
	Clock      clock.WithTicker
	Log        *slog.Logger
}

// Registry registers plugins with the handlers as their sockets appear in the directory, and
// deregisters them as the sockets are removed.
type Registry struct {
	cfg  Config
	deps Deps

	workers sync.WaitGroup

	mu sync.Mutex
	// sockets is written by Run only.
	sockets map[string]*socketWorker
	// deregistered is closed and replaced whenever a plugin was deregistered: another plugin
	// may have been rejected because that one had its name.
	deregistered chan struct{}
}

// New checks its arguments; it starts nothing.
func New(cfg Config, deps Deps) (*Registry, error) {
	if !filepath.IsAbs(cfg.Dir) {
		return nil, errors.New("new plugin registry: Dir must be an absolute path")
	}
	if err := require.Set("new plugin registry", map[string]any{"Clock": deps.Clock, "Log": deps.Log}); err != nil {
		return nil, err
	}
	if deps.NewWatcher == nil {
		deps.NewWatcher = fsnotify.NewWatcher
	}
	for kind, h := range deps.Handlers {
		if h == nil {
			return nil, fmt.Errorf("new plugin registry: no handler for type %q", kind)
		}
	}
	return &Registry{cfg: cfg, deps: deps, sockets: map[string]*socketWorker{}, deregistered: make(chan struct{})}, nil
}

// Run watches the directory until ctx is done. Plugins stay registered when it returns: the next
// run finds them again.
func (r *Registry) Run(ctx context.Context) error {
	defer r.workers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return r.watch(ctx)
}

// registerSocket starts a worker for the socket, unless the same socket has one. A worker of a
// replaced socket ends first.
func (r *Registry) registerSocket(ctx context.Context, path string, id identity) {
	old := r.sockets[path]
	if old != nil && old.id == id {
		return
	}
	w := &socketWorker{registry: r, path: path, id: id, done: make(chan struct{})}
	var gone context.Context
	gone, w.cancel = context.WithCancel(ctx)
	r.mu.Lock()
	r.sockets[path] = w
	r.mu.Unlock()
	if old != nil {
		old.cancel()
	}
	r.workers.Go(func() {
		defer close(w.done)
		defer w.cancel()
		if old != nil {
			<-old.done
		}
		w.run(ctx, gone)
	})
}

// removeSocket ends the worker of the socket at path and of every socket below path.
func (r *Registry) removeSocket(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for known, w := range r.sockets {
		if within(known, path) {
			w.cancel()
			delete(r.sockets, known)
		}
	}
}

// Sockets lists the sockets in the directory, and whether the plugin of each is registered.
func (r *Registry) Sockets() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]bool{}
	for path, w := range r.sockets {
		all[path] = w.registered.Load()
	}
	return all
}

// notifyDeregistered wakes the workers that wait to retry.
func (r *Registry) notifyDeregistered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.deregistered)
	r.deregistered = make(chan struct{})
}

func (r *Registry) nextDeregistration() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.deregistered
}
