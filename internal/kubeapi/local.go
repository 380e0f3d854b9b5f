package kubeapi

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// Local serves ConfigMaps and Secrets from files where there is no API server. It has the
// methods of Objects. All methods are safe for concurrent use.
type Local struct {
	mu         sync.Mutex
	configMaps map[types.NamespacedName]*v1.ConfigMap
	secrets    map[types.NamespacedName]*v1.Secret
	listeners  []func(kind, namespace, name string)
}

// NewLocal returns an empty store; SetObjects fills it.
func NewLocal() *Local { return &Local{} }

// ConfigMap returns the object, or a NotFound error. Callers must not modify it.
func (l *Local) ConfigMap(_ context.Context, namespace, name string) (*v1.ConfigMap, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, ok := l.configMaps[types.NamespacedName{Namespace: namespace, Name: name}]; ok {
		return c, nil
	}
	return nil, apierrors.NewNotFound(v1.Resource("configmap"), name)
}

// Secret returns the object, or a NotFound error. Callers must not modify it.
func (l *Local) Secret(_ context.Context, namespace, name string) (*v1.Secret, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.secrets[types.NamespacedName{Namespace: namespace, Name: name}]; ok {
		return s, nil
	}
	return nil, apierrors.NewNotFound(v1.Resource("secret"), name)
}

// Register does nothing: all objects are in memory.
func (l *Local) Register(*v1.Pod) {}

// Unregister does nothing.
func (l *Local) Unregister(*v1.Pod) {}

// OnChange adds a function that is called for every created, changed or deleted object, after
// the change is visible. It must not block.
func (l *Local) OnChange(f func(kind, namespace, name string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners = append(l.listeners, f)
}

// SetObjects replaces all objects.
func (l *Local) SetObjects(configMaps []*v1.ConfigMap, secrets []*v1.Secret) {
	l.mu.Lock()
	var changed []change
	l.configMaps, changed = replace(KindConfigMap, l.configMaps, configMaps, changed)
	l.secrets, changed = replace(KindSecret, l.secrets, secrets, changed)
	listeners := l.listeners
	l.mu.Unlock()
	for _, c := range changed {
		for _, f := range listeners {
			f(c.kind, c.name.Namespace, c.name.Name)
		}
	}
}

type change struct {
	kind string
	name types.NamespacedName
}

type namespacedObject interface {
	comparable
	GetNamespace() string
	GetName() string
}

func replace[T namespacedObject](kind string, before map[types.NamespacedName]T, objects []T, changed []change) (map[types.NamespacedName]T, []change) {
	after := make(map[types.NamespacedName]T, len(objects))
	for _, o := range objects {
		name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
		after[name] = o
		if old, ok := before[name]; !ok || (old != o && !equality.Semantic.DeepEqual(old, o)) {
			changed = append(changed, change{kind, name})
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			changed = append(changed, change{kind, name})
		}
	}
	return after, changed
}
