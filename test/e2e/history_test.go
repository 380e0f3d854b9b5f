package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// history has every version of every pod of a namespace, so that short-lived states can be checked
// later.
type history struct {
	mu       sync.Mutex
	versions map[string][]*corev1.Pod
	changed  chan struct{} // closed and replaced with each new version
}

// follow records the history of a new namespace until the test ends.
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

// await returns the first version for which check returns "". After the deadline the test fails with
// the shortest result of check, which is that of the closest version.
func (h *history) await(t *testing.T, name string, deadline time.Time, check func(*corev1.Pod) string) *corev1.Pod {
	t.Helper()
	over := time.After(time.Until(deadline))
	nearest := "pod " + name + " does not exist"
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
			t.Fatalf("%s: none of %d versions matches; differences of the closest one:\n%s", name, seen, nearest)
		}
	}
}
