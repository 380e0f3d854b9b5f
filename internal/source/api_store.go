package source

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// apiStore is the store of client-go's reflector. Stored pods are shared and must not be changed.
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

// Replace stores a complete list: the reflector lists at the start and after it has lost the watch.
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
	s.pods, s.listed, s.relisted = pods, true, true
	s.signal()
	return nil
}

// signal requires the lock. Before the first list the pods may be incomplete.
func (s *apiStore) signal() {
	if !s.listed {
		return
	}
	s.changed.Notify()
}

// asPod also drops the managed fields, which are half of many pods and not used here.
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
