package kubeapi

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// collection is a watched list of objects. It stores what trim returns: a reduced copy, since
// the objects of a watch may be shared.
type collection struct {
	cache.Indexer
	trim   func(any) any
	client any
	lw     *cache.ListWatch
	sample runtime.Object
	name   string

	once     sync.Once
	synced   chan struct{}
	known    *LastKnown // nil: off
	back     *Reconnects
	onChange []func()
	onRelist func() // called after each list but the first; may be nil
}

func newCollection(name string, client any, lw *cache.ListWatch, sample runtime.Object, trim func(any) any) *collection {
	return &collection{
		Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		trim:    trim,
		client:  client,
		lw:      lw,
		sample:  sample,
		name:    name,
		synced:  make(chan struct{}),
	}
}

// Run watches until ctx is done.
func (c *collection) Run(ctx context.Context) error {
	Reflector{Client: c.client, Source: c.lw, Sample: c.sample, Store: store{c}, Options: cache.ReflectorOptions{Name: c.name}, LastKnown: c.known, Reconnects: c.back}.Run(ctx)
	return nil
}

// HasSynced reports whether the first full list has arrived.
func (c *collection) HasSynced() bool {
	select {
	case <-c.synced:
		return true
	default:
		return false
	}
}

// Synced closes when the first full list has arrived.
func (c *collection) Synced() <-chan struct{} { return c.synced }

// store is the cache.ReflectorStore that the collection's watch writes to.
type store struct{ *collection }

func (s store) Add(obj any) error    { return s.notify(s.Indexer.Add(s.trim(obj))) }
func (s store) Update(obj any) error { return s.notify(s.Indexer.Update(s.trim(obj))) }
func (s store) Delete(obj any) error { return s.notify(s.Indexer.Delete(obj)) }

func (s store) Replace(list []any, version string) error {
	trimmed := make([]any, len(list))
	for i, obj := range list {
		trimmed[i] = s.trim(obj)
	}
	relist := s.HasSynced()
	err := s.Indexer.Replace(trimmed, version)
	s.once.Do(func() { close(s.synced) })
	if relist && s.onRelist != nil {
		s.onRelist()
	}
	return s.notify(err)
}

// Known returns all objects.
func (s store) Known() []metav1.Object {
	var all []metav1.Object
	for _, obj := range s.Indexer.List() {
		if o, ok := obj.(metav1.Object); ok {
			all = append(all, o)
		}
	}
	return all
}

// Transformer makes the reflector trim objects while it still receives the first list.
func (s store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.trim(obj), nil }
}

func (s store) notify(err error) error {
	if err == nil && s.HasSynced() {
		for _, f := range s.onChange {
			f()
		}
	}
	return err
}
