package kubeapi

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// KnownStore is the store of a watch whose objects are kept in the file.
type KnownStore interface {
	cache.ReflectorStore
	// Known returns the objects.
	Known() []metav1.Object
}

// Restorer is a KnownStore that decides itself what to do with objects of the file.
type Restorer interface {
	// Restore stores objects that the API server had at its last contact.
	Restore(objects []any, contact time.Time)
}

// knownStore passes on what a watch stores, and notices changes.
type knownStore struct {
	known  *LastKnown
	name   string
	sample runtime.Object
	inner  KnownStore

	hasPods bool
	// minor: a change alone is not saved. These objects are the cluster's and change often.
	minor bool

	// mu makes a list of the API server follow or prevent a restore.
	mu     sync.Mutex
	listed atomic.Bool // by the API server
}

// follow returns the store for a watch: its objects are kept in the file until forget is called, and it
// has those of the file while the API server does not respond. ctx is done before forget is called.
func (k *LastKnown) follow(ctx context.Context, name string, sample runtime.Object, store cache.ReflectorStore) cache.ReflectorStore {
	inner, ok := store.(KnownStore)
	if k == nil || !ok {
		return store
	}
	s := &knownStore{known: k, name: name, sample: sample, inner: inner}
	switch sample.(type) {
	case *v1.Pod:
		s.hasPods = true
	case *v1.ConfigMap, *v1.Secret:
	default:
		s.minor = true
	}
	k.mu.Lock()
	if ctx.Err() == nil {
		k.stores[name] = s
	}
	using, known := k.using, k.loaded
	k.mu.Unlock()
	if using && !k.wasContacted() {
		s.restore(known)
	}
	return s
}

// forget removes the objects of a watch that no pod needs any more.
func (k *LastKnown) forget(name string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.stores, name)
	k.changed.Notify()
}

// restore gives the store its objects of the file, unless it has those of the API server.
func (s *knownStore) restore(c content) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, ok := c.Objects[s.name]
	if !ok || s.listed.Load() {
		return
	}
	objects := make([]any, 0, len(raw))
	for _, text := range raw {
		object := reflect.New(reflect.TypeOf(s.sample).Elem()).Interface()
		if err := json.Unmarshal(text, object); err != nil {
			s.known.deps.Log.Error("last-known state: decode object failed", "watch", s.name, "err", err)
			continue
		}
		objects = append(objects, object)
	}
	if r, ok := s.inner.(Restorer); ok {
		r.Restore(objects, c.Contact)
	} else if err := s.inner.Replace(objects, ""); err != nil {
		s.known.deps.Log.Error("last-known state: restore objects failed", "watch", s.name, "err", err)
	}
}

// encode returns the objects as JSON; false before the API server has listed them.
func (s *knownStore) encode(namespaces map[string]bool) ([]json.RawMessage, bool) {
	if !s.listed.Load() {
		return nil, false
	}
	all := []json.RawMessage{}
	for _, o := range s.inner.Known() {
		if ns := o.GetNamespace(); ns != "" && !namespaces[ns] {
			continue
		}
		if text, err := json.Marshal(o); err == nil { // API types have no values that fail
			all = append(all, text)
		}
	}
	return all, true
}

func (s *knownStore) noted(err error) error {
	if err == nil && !s.minor {
		s.known.changed.Notify()
	}
	return err
}

func (s *knownStore) Add(o any) error    { return s.noted(s.inner.Add(o)) }
func (s *knownStore) Update(o any) error { return s.noted(s.inner.Update(o)) }
func (s *knownStore) Delete(o any) error { return s.noted(s.inner.Delete(o)) }
func (s *knownStore) Resync() error      { return s.inner.Resync() }

// Replace is called with a list of the API server only: its word wins from now on.
func (s *knownStore) Replace(list []any, version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed.Store(true)
	return s.noted(s.inner.Replace(list, version))
}

// Transformer is the store's own, if it has one.
func (s *knownStore) Transformer() cache.TransformFunc {
	if t, ok := s.inner.(cache.TransformingStore); ok {
		return t.Transformer()
	}
	return nil
}
