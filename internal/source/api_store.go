package source

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// apiStore is the side of an API source that client-go's reflector writes to. A pod once
// stored is shared with everyone and not written to again.
type apiStore API

func (s *apiStore) Add(object any) error { return s.put(object) }

func (s *apiStore) Update(object any) error { return s.put(object) }

func (s *apiStore) Resync() error { return nil }

func (s *apiStore) put(object any) error {
	p, err := asPod(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[keyOf(p)] = p
	s.signal()
	return nil
}

func (s *apiStore) Delete(object any) error {
	p, err := asPod(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, keyOf(p))
	s.signal()
	return nil
}

// Replace takes in a complete list; there is one at the start and after a lost watch.
func (s *apiStore) Replace(objects []any, _ string) error {
	pods := make(map[types.NamespacedName]*v1.Pod, len(objects))
	for _, object := range objects {
		p, err := asPod(object)
		if err != nil {
			return err
		}
		pods[keyOf(p)] = p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods, s.listed, s.fresh = pods, true, true
	s.signal()
	return nil
}

// signal needs the lock. Before the first list the pods are not known to be complete.
func (s *apiStore) signal() {
	if !s.listed {
		return
	}
	s.changed.Notify()
}

// asPod also drops what nobody on the node reads and what makes up half of many pods.
func asPod(object any) (*v1.Pod, error) {
	p, ok := object.(*v1.Pod)
	if !ok {
		return nil, fmt.Errorf("store pod: got %T", object)
	}
	p.ManagedFields = nil
	return p, nil
}

func keyOf(p *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}
