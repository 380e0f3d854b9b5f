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

// object is one ConfigMap or Secret in use: the last known form and who must hear of a
// change. It is the store of its own watch.
type object struct {
	ref    Ref
	notify func(Ref)
	users  int // guarded by Objects.mu

	// synced closes when value is the watch's word; failed when the watch's first try failed.
	synced, failed         chan struct{}
	syncedOnce, failedOnce sync.Once

	mu    sync.Mutex
	value metav1.Object // nil: the API server has none
	at    time.Time     // when it was fetched, for reads without a watch
	// served is the form last handed out, nil for absent. A change is worth telling only
	// to those who were handed something else; the first word of a watch usually is not.
	served    metav1.Object
	wasServed bool
	stop      func()
}

func newObject(ref Ref, notify func(Ref)) *object {
	return &object{ref: ref, notify: notify, synced: make(chan struct{}), failed: make(chan struct{})}
}

func (b *object) notFound() error {
	// Singular, as users know the message: configmap "x" not found.
	return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(b.ref.Kind)}, b.ref.Name)
}

// serve hands out the current form.
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

// cached hands out the current form if it was fetched after the given time.
func (b *object) cached(after time.Time) (got metav1.Object, err error, fresh bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.Before(after) || b.at.IsZero() {
		return nil, nil, false
	}
	got, err = b.serveLocked()
	return got, err, true
}

func (b *object) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = time.Time{}
}

// remember takes the answer of a direct read and hands out what is known then: the watch
// may have spoken in between, and its word is at least as new. An error other than
// "not found" says nothing about the object.
func (b *object) remember(got metav1.Object, err error, now time.Time) (metav1.Object, error) {
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.synced:
	default:
		b.value, b.at = got, now
	}
	return b.serveLocked()
}

// set takes the watch's word (nil: deleted) and tells the subscribers if somebody holds
// another form.
func (b *object) set(got metav1.Object) {
	b.mu.Lock()
	tell := b.replaceLocked(got, time.Time{})
	b.syncedOnce.Do(func() { close(b.synced) })
	b.mu.Unlock()
	if tell {
		b.notify(b.ref)
	}
}

// polled takes the answer of a read that nobody asked for.
func (b *object) polled(got metav1.Object, now time.Time) {
	b.mu.Lock()
	tell := b.replaceLocked(got, now)
	b.mu.Unlock()
	if tell {
		b.notify(b.ref)
	}
}

// replaceLocked stores a form and reports whether somebody holds another. It reports a
// form once: the same may come again when the watch is renewed. The whole form counts, for
// a version is given out again after a restore of etcd.
func (b *object) replaceLocked(got metav1.Object, at time.Time) (tell bool) {
	b.value, b.at = got, at
	tell = b.wasServed && !equality.Semantic.DeepEqual(b.served, got)
	if tell {
		b.served = got
	}
	return tell
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
	if o, ok := b.mine(got); ok {
		b.set(trim(o))
	}
	return nil
}

func (b *object) Delete(got any) error {
	if _, ok := b.mine(got); ok {
		b.set(nil)
	}
	return nil
}

func (b *object) Replace(list []any, _ string) error {
	for _, got := range list {
		if o, ok := b.mine(got); ok {
			b.set(trim(o))
			return nil
		}
	}
	b.set(nil)
	return nil
}

func (b *object) Resync() error { return nil }

// mine reports whether the watch speaks of this object: a server that overlooks the
// selector must not pass off another Secret as ours.
func (b *object) mine(got any) (metav1.Object, bool) {
	o, ok := got.(metav1.Object)
	return o, ok && o.GetName() == b.ref.Name && o.GetNamespace() == b.ref.Namespace
}

// trim returns a copy without what is never read here; the last-applied annotation alone
// holds a second copy of all the data. The original may be shared with other watches.
func trim(got metav1.Object) metav1.Object {
	var kept metav1.Object
	switch o := got.(type) {
	case *v1.ConfigMap:
		c := *o
		kept = &c
	case *v1.Secret:
		c := *o
		kept = &c
	}
	kept.SetManagedFields(nil)
	if _, ok := kept.GetAnnotations()[v1.LastAppliedConfigAnnotation]; ok {
		annotations := maps.Clone(kept.GetAnnotations())
		delete(annotations, v1.LastAppliedConfigAnnotation)
		kept.SetAnnotations(annotations)
	}
	return kept
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
