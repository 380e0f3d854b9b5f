package kubeapi

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/notify"
	"swiftlet/internal/require"
)

// LastKnownFile is the name of the file in the agent's root directory.
const LastKnownFile = "last_known_state"

const (
	// outageAfter is the time after the start from which on the file is used if the API server has not
	// responded. The network of a machine that boots may need some of it.
	outageAfter = 10 * time.Second
	// firstSaveAfter is the time after the first contact in which the file is not replaced: what pods use
	// is read one after the other.
	firstSaveAfter = 10 * time.Second
	// saveEvery bounds the writes while many pods change.
	saveEvery = time.Second
	// saveRetry is the time after a failed write until the next, on a full disk for example.
	saveRetry = 30 * time.Second
	// contactEvery is how exactly the time of the last contact is known after a reboot.
	contactEvery = time.Minute
)

// LastKnownConfig configures LastKnown.
type LastKnownConfig struct {
	// On: otherwise New returns nil.
	On bool
	// RootDir has the file. It has Secrets and tokens, so only root may read it.
	RootDir  string
	NodeName string
}

func (c LastKnownConfig) path() string { return filepath.Join(c.RootDir, LastKnownFile) }

// LastKnownDeps are the dependencies of LastKnown.
type LastKnownDeps struct {
	Clock clock.WithTicker
	Log   *slog.Logger
}

// LastKnown keeps the objects that this node's pods use in a file. If the API server does not respond
// after a start, the watches get the objects of the file until it does. Then its objects replace them.
//
// A nil LastKnown does nothing: the option is off. All methods are safe for concurrent use.
type LastKnown struct {
	cfg     LastKnownConfig
	deps    LastKnownDeps
	changed notify.Signal
	contact notify.Signal // the time of the last contact is to be written
	touched atomic.Int64  // when it was written, in Unix nanoseconds; 0 before the first contact

	mu     sync.Mutex
	stores map[string]*knownStore
	tokens *Tokens // nil: none are kept
	// loaded is the content of the file until objects of the API server have replaced it.
	loaded content
	using  bool // watches without objects of the API server have those of the file
}

// NewLastKnown reads the file, or returns nil if the option is off. It starts nothing.
func NewLastKnown(cfg LastKnownConfig, deps LastKnownDeps) (*LastKnown, error) {
	if !cfg.On {
		return nil, nil
	}
	if err := require.Set("new last-known state", map[string]any{
		"RootDir": cfg.RootDir, "NodeName": cfg.NodeName, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	k := &LastKnown{cfg: cfg, deps: deps, changed: notify.New(), contact: notify.New(), stores: map[string]*knownStore{}}
	k.loaded = k.load()
	return k, nil
}

// Contacted records that the API server has responded.
func (k *LastKnown) Contacted() {
	if k == nil {
		return
	}
	last, now := k.touched.Load(), k.deps.Clock.Now().UnixNano()
	if last == 0 || now-last >= int64(contactEvery) || now < last {
		if k.touched.CompareAndSwap(last, now) {
			k.contact.Notify()
		}
	}
}

func (k *LastKnown) wasContacted() bool { return k.touched.Load() != 0 }

// Run uses the file if the API server does not respond, and writes it after changes, until ctx is done.
func (k *LastKnown) Run(ctx context.Context) error {
	if k == nil {
		return nil
	}
	outage := k.deps.Clock.NewTimer(outageAfter)
	defer outage.Stop()
	for waiting := true; waiting; {
		select {
		case <-k.contact:
			waiting = false
		case <-outage.C():
			k.use()
		case <-ctx.Done():
			return nil
		}
	}
	if sleep(ctx, k.deps.Clock, firstSaveAfter) != nil {
		return nil
	}
	k.changed.Notify()
	for {
		select {
		case <-k.changed:
			if sleep(ctx, k.deps.Clock, k.save()) != nil {
				return nil
			}
		case <-k.contact:
			k.touch()
		case <-ctx.Done():
			return nil
		}
	}
}

// use gives the objects of the file to all watches that have none of the API server.
func (k *LastKnown) use() {
	k.mu.Lock()
	known, stores := k.loaded, slices.Collect(maps.Values(k.stores))
	if k.wasContacted() || known.empty() {
		k.mu.Unlock()
		return
	}
	k.using = true
	k.mu.Unlock()
	k.deps.Log.Warn("last-known state: API server does not respond, using the objects of the file",
		"path", k.cfg.path(), "lastContact", known.Contact, "waited", outageAfter)
	if k.tokens != nil {
		k.tokens.restore(known.Tokens)
	}
	for _, s := range stores { // without the lock: stores notify others
		s.restore(known)
	}
}
