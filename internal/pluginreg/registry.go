package pluginreg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"k8s.io/utils/clock"
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

// Handler works with plugins of one type. Calls for plugins of one socket never overlap,
// those for different sockets may.
type Handler interface {
	// Validate refuses a plugin that cannot be worked with. The plugin is told why.
	Validate(ctx context.Context, p Plugin) error
	// Register takes the plugin into use. ctx ends when the socket goes. The plugin is
	// told of an error, and asked again later.
	Register(ctx context.Context, p Plugin) error
	// Deregister is called after the socket of a registered plugin has gone, and where the
	// plugin could not be told of its registration; not when the agent ends.
	Deregister(p Plugin)
}

// Config is fixed for the life of the agent.
type Config struct {
	// Dir is the registration folder, ROOT/plugins_registry. Run makes it.
	Dir string
}

// Deps is what the registry works with.
type Deps struct {
	// Handlers are found by the type plugins give themselves, such as CSIPlugin.
	Handlers map[string]Handler
	Clock    clock.WithTicker
	Log      *slog.Logger
}

// Registry keeps the handlers in step with the sockets in the folder.
type Registry struct {
	cfg  Config
	deps Deps

	keepers sync.WaitGroup

	mu sync.Mutex
	// sockets are changed by Run alone.
	sockets map[string]*keeper
	// left is closed, and made anew, when a plugin has been deregistered: its name is free
	// for one that was refused because of it.
	left chan struct{}
}

// New checks its arguments; it starts nothing.
func New(cfg Config, deps Deps) (*Registry, error) {
	if !filepath.IsAbs(cfg.Dir) {
		return nil, errors.New("make plugin registry: Dir must be an absolute path")
	}
	if deps.Clock == nil || deps.Log == nil {
		return nil, errors.New("make plugin registry: Clock and Log are needed")
	}
	for kind, h := range deps.Handlers {
		if h == nil {
			return nil, fmt.Errorf("make plugin registry: no handler for type %q", kind)
		}
	}
	return &Registry{cfg: cfg, deps: deps, sockets: map[string]*keeper{}, left: make(chan struct{})}, nil
}

// Run follows the folder until ctx is done. Plugins stay registered when it ends: they are
// found again by the next run.
func (r *Registry) Run(ctx context.Context) error {
	defer r.keepers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return r.follow(ctx)
}

// found sees to it that the socket is registered, anew if it has become another one.
func (r *Registry) found(ctx context.Context, path string, id identity) {
	old := r.sockets[path]
	if old != nil && old.id == id {
		return
	}
	k := &keeper{registry: r, path: path, id: id, done: make(chan struct{})}
	var gone context.Context
	gone, k.dismiss = context.WithCancel(ctx)
	r.mu.Lock()
	r.sockets[path] = k
	r.mu.Unlock()
	if old != nil {
		old.dismiss()
	}
	r.keepers.Go(func() {
		defer close(k.done)
		defer k.dismiss()
		if old != nil {
			<-old.done
		}
		k.keep(ctx, gone)
	})
}

// lost gives up the socket, and in case it was a folder those that were in it.
func (r *Registry) lost(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for known, k := range r.sockets {
		if within(known, path) {
			k.dismiss()
			delete(r.sockets, known)
		}
	}
}

// Sockets are the plugins' sockets that are there, and whether their plugins are registered.
func (r *Registry) Sockets() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]bool{}
	for path, k := range r.sockets {
		all[path] = k.registered.Load()
	}
	return all
}

// departed tells those that wait to try again that a plugin has left.
func (r *Registry) departed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.left)
	r.left = make(chan struct{})
}

func (r *Registry) departure() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}
