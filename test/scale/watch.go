package scale

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// state is what a watch keeps of a pod or node: there are many of them.
type state struct {
	uid     types.UID
	node    string
	ready   bool
	readyAt time.Time // when it was first seen ready
}

// readyWatch follows which pods or nodes are ready. It is a store of a reflector.
type readyWatch[T metav1.Object] struct {
	read func(T) (node string, ready bool)

	mu       sync.Mutex
	complete bool // listed at least once
	states   map[string]state
	lost     int // how often something that was ready was not ready afterwards
}

type (
	podWatch  = readyWatch[*corev1.Pod]
	nodeWatch = readyWatch[*corev1.Node]
)

func newPodWatch() *podWatch {
	return &podWatch{states: map[string]state{}, read: func(p *corev1.Pod) (string, bool) {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady {
				return p.Spec.NodeName, c.Status == corev1.ConditionTrue
			}
		}
		return p.Spec.NodeName, false
	}}
}

func newNodeWatch() *nodeWatch {
	return &nodeWatch{states: map[string]state{}, read: func(n *corev1.Node) (string, bool) {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return n.Name, c.Status == corev1.ConditionTrue
			}
		}
		return n.Name, false
	}}
}

// runWatches runs both watches until ctx is done. The returned function waits for that.
func runWatches(ctx context.Context, client kubernetes.Interface, pods *podWatch, nodes *nodeWatch) func() {
	core := client.CoreV1()
	podSource := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Pods(namespace).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return core.Pods(namespace).Watch(ctx, o)
		},
	}
	nodeSource := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Nodes().List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return core.Nodes().Watch(ctx, o)
		},
	}
	var running sync.WaitGroup
	running.Go(func() { cache.NewReflector(podSource, &corev1.Pod{}, pods, 0).RunWithContext(ctx) })
	running.Go(func() { cache.NewReflector(nodeSource, &corev1.Node{}, nodes, 0).RunWithContext(ctx) })
	return running.Wait
}

// Add, Update, Delete, Replace and Resync are the methods of cache.ReflectorStore.
func (w *readyWatch[T]) Add(object any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(object.(T))
	return nil
}

// Update: see Add.
func (w *readyWatch[T]) Update(object any) error { return w.Add(object) }

// Delete: see Add.
func (w *readyWatch[T]) Delete(object any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.states, object.(T).GetName())
	return nil
}

// Replace: see Add.
func (w *readyWatch[T]) Replace(objects []any, _ string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := maps.Clone(w.states)
	for _, object := range objects {
		w.set(object.(T))
		delete(before, object.(T).GetName())
	}
	for name := range before {
		delete(w.states, name)
	}
	w.complete = true
	return nil
}

// Resync: see Add.
func (w *readyWatch[T]) Resync() error { return nil }

// set keeps what is needed of an object; the caller holds mu.
func (w *readyWatch[T]) set(object T) {
	old := w.states[object.GetName()]
	now := state{uid: object.GetUID(), readyAt: old.readyAt}
	now.node, now.ready = w.read(object)
	if now.ready && now.readyAt.IsZero() {
		now.readyAt = time.Now()
	}
	if old.ready && !now.ready {
		w.lost++
	}
	w.states[object.GetName()] = now
}

func (w *readyWatch[T]) listed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.complete
}

// ready counts what is ready.
func (w *readyWatch[T]) ready() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, s := range w.states {
		if s.ready {
			n++
		}
	}
	return n
}

// readinessLost is how often something became not ready.
func (w *readyWatch[T]) readinessLost() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// all returns a copy of the states by name.
func (w *readyWatch[T]) all() map[string]state {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.states)
}
