package kubeapi

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// collection is a watched list of objects, in the shape that keep makes of them: a copy,
// since what a watch delivers may be shared.
type collection struct {
	cache.Indexer
	keep   func(any) any
	client any
	lw     *cache.ListWatch
	sample runtime.Object
	name   string

	once     sync.Once
	synced   chan struct{}
	changed  []func()
	relisted func() // of each list but the first; may be nil
}

func newCollection(name string, client any, lw *cache.ListWatch, sample runtime.Object, keep func(any) any) *collection {
	return &collection{
		Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		keep:    keep,
		client:  client,
		lw:      lw,
		sample:  sample,
		name:    name,
		synced:  make(chan struct{}),
	}
}

// Run watches until ctx is done.
func (c *collection) Run(ctx context.Context) error {
	Reflection{Client: c.client, Source: c.lw, Sample: c.sample, Store: store{c}, Options: cache.ReflectorOptions{Name: c.name}}.Run(ctx)
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

// store is the side of a collection that its watch writes to.
type store struct{ *collection }

func (s store) Add(obj any) error    { return s.tell(s.Indexer.Add(s.keep(obj))) }
func (s store) Update(obj any) error { return s.tell(s.Indexer.Update(s.keep(obj))) }
func (s store) Delete(obj any) error { return s.tell(s.Indexer.Delete(obj)) }

func (s store) Replace(list []any, version string) error {
	kept := make([]any, len(list))
	for i, obj := range list {
		kept[i] = s.keep(obj)
	}
	again := s.HasSynced()
	err := s.Indexer.Replace(kept, version)
	s.once.Do(func() { close(s.synced) })
	if again && s.relisted != nil {
		s.relisted()
	}
	return s.tell(err)
}

// Transformer lets the first list, too, be held in the kept shape only.
func (s store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.keep(obj), nil }
}

func (s store) tell(err error) error {
	if err == nil && s.HasSynced() {
		for _, changed := range s.changed {
			changed()
		}
	}
	return err
}
