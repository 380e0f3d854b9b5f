package kubeapi

import (
	"maps"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object is one ConfigMap or Secret in use: its last known value, and the function to call on a
// change. It is the cache.ReflectorStore of its own watch.
type object struct {
	ref    Ref
	notify func(Ref)
	// users and unwatched are guarded by Objects.mu. unwatched: no pod that uses it has a watch left for it.
	users     int
	unwatched bool

	// synced closes when the watch has set value; failed closes when the watch could not start.
	synced, failed         chan struct{}
	syncedOnce, failedOnce sync.Once

	mu        sync.Mutex
	value     metav1.Object // nil: not found
	fetchedAt time.Time     // of value, where there is no watch
	// served is the value that was last returned, nil for not found. A value that equals it
	// is no change, which is usual for the first value of a watch.
	served    metav1.Object
	wasServed bool
	stop      func()
}

func newObject(ref Ref, notify func(Ref)) *object {
	return &object{ref: ref, notify: notify, synced: make(chan struct{}), failed: make(chan struct{})}
}

func (b *object) notFound() error {
	// Singular, as in the reference kubelet's message: configmap "x" not found.
	return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(b.ref.Kind)}, b.ref.Name)
}

// serve returns the current value.
func (b *object) serve() (metav1.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.serveLocked()
}

func (b *object) serveLocked() (metav1.Object, error) {
	b.served, b.wasServed = b.value, true
	if b.value == nil {
		return nil, b.notFound()
	}
	return b.value, nil
}

// cached returns the current value if it was fetched after the given time.
func (b *object) cached(after time.Time) (got metav1.Object, err error, fresh bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.fetchedAt.After(after) || b.fetchedAt.IsZero() {
		return nil, nil, false
	}
	got, err = b.serveLocked()
	return got, err, true
}

func (b *object) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fetchedAt = time.Time{}
}

// setFetched stores the result of a direct read and returns the current value. If the watch has
// delivered a value meanwhile, that is at least as new and remains. setFetched returns an error
// other than NotFound as it is.
func (b *object) setFetched(got metav1.Object, err error, now time.Time) (metav1.Object, error) {
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.synced:
	default:
		b.value, b.fetchedAt = got, now
	}
	return b.serveLocked()
}

// setWatched stores a value from the watch (nil: deleted), and notifies subscribers of a change.
func (b *object) setWatched(got metav1.Object) {
	b.mu.Lock()
	changed := b.replaceLocked(got, time.Time{})
	b.syncedOnce.Do(func() { close(b.synced) })
	b.mu.Unlock()
	if changed {
		b.notify(b.ref)
	}
}

// setPolled stores a value from a periodic read, and notifies subscribers of a change.
func (b *object) setPolled(got metav1.Object, now time.Time) {
	b.mu.Lock()
	changed := b.replaceLocked(got, now)
	b.mu.Unlock()
	if changed {
		b.notify(b.ref)
	}
}

// replaceLocked stores a value and reports whether it differs from what was served. It reports a
// change once: a new watch may deliver the same value again. It compares whole values, because
// resource versions repeat after a restore of etcd.
func (b *object) replaceLocked(got metav1.Object, fetchedAt time.Time) (changed bool) {
	b.value, b.fetchedAt = got, fetchedAt
	changed = b.wasServed && !equality.Semantic.DeepEqual(b.served, got)
	if changed {
		b.served = got
	}
	return changed
}

func (b *object) setFailed() { b.failedOnce.Do(func() { close(b.failed) }) }

func (b *object) stopWatch() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stop != nil {
		b.stop()
		b.stop = nil
	}
}

// The methods of cache.ReflectorStore.

func (b *object) Add(got any) error { return b.Update(got) }

func (b *object) Update(got any) error {
	if o, ok := b.match(got); ok {
		b.setWatched(trim(o))
	}
	return nil
}

func (b *object) Delete(got any) error {
	if _, ok := b.match(got); ok {
		b.setWatched(nil)
	}
	return nil
}

func (b *object) Replace(list []any, _ string) error {
	for _, got := range list {
		if o, ok := b.match(got); ok {
			b.setWatched(trim(o))
			return nil
		}
	}
	b.setWatched(nil)
	return nil
}

func (b *object) Resync() error { return nil }

// Known returns the object, if it exists.
func (b *object) Known() []metav1.Object {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.value == nil {
		return nil
	}
	return []metav1.Object{b.value}
}

// match reports whether the watch delivered this object: a server that ignores the field
// selector must not substitute another Secret.
func (b *object) match(got any) (metav1.Object, bool) {
	o, ok := got.(metav1.Object)
	return o, ok && o.GetName() == b.ref.Name && o.GetNamespace() == b.ref.Namespace
}

// trim returns a copy without managed fields and the last-applied annotation, which holds a
// second copy of all data. The original may be shared with other watches.
func trim(got metav1.Object) metav1.Object {
	var trimmed metav1.Object
	switch o := got.(type) {
	case *v1.ConfigMap:
		c := *o
		trimmed = &c
	case *v1.Secret:
		c := *o
		trimmed = &c
	}
	trimmed.SetManagedFields(nil)
	if _, ok := trimmed.GetAnnotations()[v1.LastAppliedConfigAnnotation]; ok {
		annotations := maps.Clone(trimmed.GetAnnotations())
		delete(annotations, v1.LastAppliedConfigAnnotation)
		trimmed.SetAnnotations(annotations)
	}
	return trimmed
}

func immutable(got metav1.Object) bool {
	var flag *bool
	switch o := got.(type) {
	case *v1.ConfigMap:
		flag = o.Immutable
	case *v1.Secret:
		flag = o.Immutable
	}
	return flag != nil && *flag
}
