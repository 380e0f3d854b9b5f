package fakeapi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// object is what every stored object is.
type object interface {
	runtime.Object
	metav1.Object
}

// collection has the objects of one resource. Objects are replaced, never changed.
type collection struct {
	gvr     schema.GroupVersionResource
	gvk     schema.GroupVersionKind
	objects map[string]object // by namespace/name
	history []change
	// compacted is the version below which the history was dropped.
	compacted int64
}

type change struct {
	version int64
	kind    watch.EventType
	object  object
}

func newCollection(gvr schema.GroupVersionResource) *collection {
	return &collection{gvr: gvr, gvk: gvr.GroupVersion().WithKind(kinds[gvr]), objects: map[string]object{}}
}

// sorted lists the objects by name.
func (c *collection) sorted() []object {
	var all []object
	for _, o := range c.objects {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all
}

func (c *collection) notFound(name string) error {
	return apierrors.NewNotFound(c.gvr.GroupResource(), name)
}

// put stores an object and tells watches; the caller holds mu.
func (s *Server) put(c *collection, o object) object {
	key := o.GetNamespace() + "/" + o.GetName()
	kind := watch.Modified
	if c.objects[key] == nil {
		kind = watch.Added
		if o.GetUID() == "" {
			s.uids++
			o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.uids)))
		}
		if created := o.GetCreationTimestamp(); created.IsZero() {
			o.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
		}
	}
	s.record(c, kind, o)
	c.objects[key] = o
	return o
}

// remove deletes an object and tells watches; the caller holds mu.
func (s *Server) remove(c *collection, o object) {
	delete(c.objects, o.GetNamespace()+"/"+o.GetName())
	s.record(c, watch.Deleted, o.DeepCopyObject().(object))
}

func (s *Server) record(c *collection, kind watch.EventType, o object) {
	s.version++
	o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	c.history = append(c.history, change{s.version, kind, o})
	close(s.changed)
	s.changed = make(chan struct{})
}

// Edit changes the stored object of that kind, which must exist, or creates it: edit gets a copy of it or
// an empty object. An error of edit changes nothing.
func Edit[T any, P interface {
	*T
	object
}](s *Server, namespace, name string, edit func(P) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.collectionOf(P(new(T)))
	if err != nil {
		return err
	}
	var next P
	if now := c.objects[namespace+"/"+name]; now != nil {
		next = now.DeepCopyObject().(P)
	} else {
		next = new(T)
		next.SetNamespace(namespace)
		next.SetName(name)
	}
	if err := edit(next); err != nil {
		return err
	}
	s.put(c, next)
	return nil
}

// Remove deletes an object at once, if it exists.
func Remove[T any, P interface {
	*T
	object
}](s *Server, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, err := s.collectionOf(P(new(T))); err == nil {
		if o := c.objects[namespace+"/"+name]; o != nil {
			s.remove(c, o)
		}
	}
}

// List returns the stored objects of a kind, sorted by name. They must not be changed.
func List[T any, P interface {
	*T
	object
}](s *Server) []P {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.collectionOf(P(new(T)))
	if err != nil {
		return nil
	}
	var all []P
	for _, o := range c.sorted() {
		all = append(all, o.(P))
	}
	return all
}

func (s *Server) collectionOf(o runtime.Object) (*collection, error) {
	found, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		return nil, err
	}
	for gvr, kind := range kinds {
		if kind == found[0].Kind && gvr.GroupVersion() == found[0].GroupVersion() {
			return s.collection(gvr), nil
		}
	}
	return nil, fmt.Errorf("%s is not served", found[0])
}

func (s *Server) collection(gvr schema.GroupVersionResource) *collection {
	c := s.collections[gvr]
	if c == nil {
		c = newCollection(gvr)
		s.collections[gvr] = c
	}
	return c
}

// matches reports whether an object is selected by namespace and fields.
func matches(o object, namespace string, selector fields.Selector) bool {
	if namespace != "" && o.GetNamespace() != namespace {
		return false
	}
	if selector == nil || selector.Empty() {
		return true
	}
	set := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	if p, ok := o.(*v1.Pod); ok {
		set["spec.nodeName"] = p.Spec.NodeName
	}
	return selector.Matches(set)
}

// newList returns a typed list of objects.
func (c *collection) newList(items []object, version int64) (runtime.Object, error) {
	list, err := scheme.Scheme.New(c.gvr.GroupVersion().WithKind(c.gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	all := make([]runtime.Object, len(items))
	for i, o := range items {
		all[i] = o.DeepCopyObject() // the encoder sets the kind
	}
	if err := meta.SetList(list, all); err != nil {
		return nil, err
	}
	list.(metav1.ListInterface).SetResourceVersion(strconv.FormatInt(version, 10))
	return list, nil
}
