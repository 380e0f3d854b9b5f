package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// podWatch watches the pods of one node and notes when it learns of a change.
type podWatch struct {
	client kubernetes.Interface
	node   string

	mu    sync.Mutex
	pods  map[string]*corev1.Pod
	waits map[string][]*podWait
}

// podWait waits for a condition of one pod.
type podWait struct {
	pod  string
	met  func(*corev1.Pod) bool
	done chan time.Time // has a buffer of one
}

func newPodWatch(client kubernetes.Interface, node string) *podWatch {
	return &podWatch{client: client, node: node, pods: map[string]*corev1.Pod{}, waits: map[string][]*podWait{}}
}

// Run watches until ctx is done. A watch that ends is started again.
func (w *podWatch) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.watchOnce(ctx); err != nil && ctx.Err() == nil {
			select { // the API server may be restarting
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
	return nil
}

func (w *podWatch) watchOnce(ctx context.Context) error {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", w.node).String()}
	list, err := w.client.CoreV1().Pods(namespace).List(ctx, options)
	if err != nil {
		return err
	}
	w.replace(list.Items)
	options.ResourceVersion = list.ResourceVersion
	stream, err := w.client.CoreV1().Pods(namespace).Watch(ctx, options)
	if err != nil {
		return err
	}
	defer stream.Stop()
	for {
		select {
		case event, open := <-stream.ResultChan():
			now := time.Now()
			p, ok := event.Object.(*corev1.Pod)
			if !open || !ok {
				return nil
			}
			w.set(p.Name, p, event.Type == watch.Deleted, now)
		case <-ctx.Done():
			return nil
		}
	}
}

// replace takes the pods of a list.
func (w *podWatch) replace(items []corev1.Pod) {
	now := time.Now()
	missing := map[string]bool{}
	w.mu.Lock()
	for name := range w.pods {
		missing[name] = true
	}
	w.mu.Unlock()
	for i := range items {
		delete(missing, items[i].Name)
		w.set(items[i].Name, &items[i], false, now)
	}
	for name := range missing {
		w.set(name, nil, true, now)
	}
}

// set notes a version of a pod and completes the waits that it meets.
func (w *podWatch) set(name string, p *corev1.Pod, deleted bool, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if deleted {
		p = nil
		delete(w.pods, name)
	} else {
		w.pods[name] = p
	}
	var left []*podWait
	for _, wait := range w.waits[name] {
		if wait.met(p) {
			wait.done <- now
		} else {
			left = append(left, wait)
		}
	}
	if left == nil {
		delete(w.waits, name)
	} else {
		w.waits[name] = left
	}
}

// get returns the last version of a pod; nil if it does not exist.
func (w *podWatch) get(name string) *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pods[name]
}

// names are the pods that exist.
func (w *podWatch) names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.pods))
}

// expect begins to wait for the next version of a pod that meets a condition. Call it before the
// action that leads there.
func (w *podWatch) expect(name string, met func(*corev1.Pod) bool) *podWait {
	wait := &podWait{pod: name, met: met, done: make(chan time.Time, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits[name] = append(w.waits[name], wait)
	return wait
}

// at returns when the watch delivered the version that meets the condition.
func (w *podWait) at(ctx context.Context) (time.Time, error) {
	select {
	case now := <-w.done:
		return now, nil
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("wait for pod %s: %w", w.pod, context.Cause(ctx))
	}
}
