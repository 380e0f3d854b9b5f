package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// history is every version of every pod of a namespace: what a pod was for a moment can
// still be looked for afterwards.
type history struct {
	mu       sync.Mutex
	versions map[string][]*corev1.Pod
	changed  chan struct{} // closed, and replaced, with each new version
}

// follow keeps the history of a new namespace until the test ends.
func follow(t *testing.T, namespace string) *history {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := client().CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	h := &history{versions: map[string][]*corev1.Pod{}, changed: make(chan struct{})}
	var following sync.WaitGroup
	following.Go(func() {
		for event := range stream.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				h.add(pod)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		stream.Stop()
		following.Wait()
	})
	return h
}

func (h *history) add(pod *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.versions[pod.Name] = append(h.versions[pod.Name], pod)
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *history) of(name string) ([]*corev1.Pod, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.versions[name], h.changed
}

// await returns the first version in which nothing is missing. After the deadline it fails
// with the shortest that was: a pod passes through many states, and that tells most.
func (h *history) await(t *testing.T, name string, deadline time.Time, check func(*corev1.Pod) string) *corev1.Pod {
	t.Helper()
	over := time.After(time.Until(deadline))
	nearest := "there is no pod " + name
	for seen := 0; ; {
		versions, changed := h.of(name)
		for ; seen < len(versions); seen++ {
			missing := check(versions[seen])
			if missing == "" {
				return versions[seen]
			}
			if seen == 0 || len(missing) < len(nearest) {
				nearest = missing
			}
		}
		select {
		case <-changed:
		case <-over:
			t.Fatalf("%s was in none of %d versions as wanted; what differs in the nearest:\n%s", name, seen, nearest)
		}
	}
}
