package source

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
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
	if p = s.usable(p); p == nil {
		return nil
	}
	key := keyOf(p)
	s.settle(p, s.pods[key])
	s.pods[key] = p
	s.signal()
	return nil
}

// usable returns the pod, or its last version if the names of this one cannot be used, or nil. A pod that
// runs must not end because of a version that the API server should have rejected. It requires the lock.
func (s *apiStore) usable(p *v1.Pod) *v1.Pod {
	err := pod.CheckNames(p)
	if err == nil {
		return p
	}
	s.deps.Log.Error("pod source: ignored pod with an invalid name", "namespace", p.Namespace, "name", p.Name, "err", err)
	return s.pods[keyOf(p)]
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
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range objects {
		p, err := asPod(object)
		if err != nil {
			return err
		}
		if p = s.usable(p); p != nil {
			key := keyOf(p)
			s.settle(p, s.pods[key])
			pods[key] = p
		}
	}
	s.pods, s.listed, s.relisted, s.restored = pods, true, true, false
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
	trim(p)
	return p, nil
}

func keyOf(p *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}
