package path

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"swiftlet/internal/pod"
)

// podStore has the pods of a fake API server and of a manifest directory. It survives crashes of the
// agent.
type podStore struct {
	mu      sync.Mutex
	pods    []*v1.Pod // of the API server; replaced, never changed
	static  []*v1.Pod
	version int
	changed chan struct{}
}

func newPodStore() *podStore { return &podStore{changed: make(chan struct{}, 1)} }

// feed sends snapshots of the pods, now and after every change.
func (w *podStore) feed(ctx context.Context, out chan<- pod.Snapshot) {
	for {
		w.mu.Lock()
		all := []pod.Snapshot{
			{Source: pod.SourceFile, Pods: slices.Clone(w.static)},
			{Source: pod.SourceAPI, Pods: slices.Clone(w.pods)},
		}
		w.mu.Unlock()
		for _, s := range all {
			select {
			case out <- s:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			return
		}
	}
}

// change edits the pods and triggers new snapshots.
func (w *podStore) change(edit func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := edit(); err != nil {
		return err
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
	return nil
}

// find returns the index of an API pod; the caller holds mu.
func (w *podStore) find(name string) (int, error) {
	i := slices.IndexFunc(w.pods, func(p *v1.Pod) bool { return p.Name == name })
	if i < 0 {
		return 0, apierrors.NewNotFound(v1.Resource("pods"), name)
	}
	return i, nil
}

// put stores a pod with a new resource version; the caller holds mu.
func (w *podStore) put(i int, p *v1.Pod) {
	w.version++
	p.ResourceVersion = strconv.Itoa(w.version)
	w.pods[i] = p
}

// apply creates pods or changes their spec.
func (w *podStore) apply(text []byte) error {
	pods, err := parse(text)
	if err != nil {
		return err
	}
	return w.change(func() error {
		for _, p := range pods {
			pod.Default(p)
			p.UID = types.UID(p.Name + "-uid")
			i, err := w.find(p.Name)
			if err != nil {
				i, w.pods = len(w.pods), append(w.pods, nil)
				p.CreationTimestamp, p.Status.Phase = metav1.Now(), v1.PodPending
			} else {
				p.ObjectMeta, p.Status = w.pods[i].ObjectMeta, w.pods[i].Status
			}
			p.Generation++
			w.put(i, p)
		}
		return nil
	})
}

// setStatic replaces all static manifests.
func (w *podStore) setStatic(texts ...[]byte) error {
	var all []*v1.Pod
	for _, text := range texts {
		pods, err := parse(text)
		if err != nil {
			return err
		}
		for _, p := range pods {
			pod.MakeStatic(p, pod.Origin{Source: pod.SourceFile, NodeName: "node"}, nil)
			all = append(all, p)
		}
	}
	return w.change(func() error { w.static = all; return nil })
}

// delete sets a pod's deletion timestamp; a negative grace period means the pod's own.
func (w *podStore) delete(name string, grace int64) error {
	return w.change(func() error {
		i, err := w.find(name)
		if err != nil {
			return err
		}
		p := w.pods[i].DeepCopy()
		if grace < 0 {
			grace = *p.Spec.TerminationGracePeriodSeconds
		}
		at := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
		p.Generation++
		w.put(i, p)
		return nil
	})
}

// PatchStatus is called by the status publisher.
func (w *podStore) PatchStatus(_ context.Context, _, name string, patch []byte) (version string, err error) {
	err = w.change(func() error {
		i, err := w.find(name)
		if err != nil {
			return err
		}
		before, err := json.Marshal(w.pods[i])
		if err != nil {
			return err
		}
		after, err := strategicpatch.StrategicMergePatch(before, patch, v1.Pod{})
		if err != nil {
			return err
		}
		p := &v1.Pod{}
		if err := json.Unmarshal(after, p); err != nil {
			return err
		}
		w.put(i, p)
		version = p.ResourceVersion
		return nil
	})
	return version, err
}

// DeletePod is called by the status publisher when a pod has terminated.
func (w *podStore) DeletePod(_ context.Context, _, name string, _ types.UID) error {
	return w.change(func() error {
		i, err := w.find(name)
		if err != nil {
			return err
		}
		if p := w.pods[i].DeepCopy(); len(p.Finalizers) > 0 { // it is deleted when they are removed
			p.DeletionGracePeriodSeconds = new(int64)
			w.put(i, p)
			return nil
		}
		w.pods = slices.Delete(slices.Clone(w.pods), i, i+1)
		return nil
	})
}

// list returns the API pods with their published status.
func (w *podStore) list() []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.pods)
}

// parse parses the pods of a YAML file.
func parse(text []byte) ([]*v1.Pod, error) {
	var pods []*v1.Pod
	for _, document := range strings.Split(string(text), "\n---\n") {
		p := &v1.Pod{}
		if err := yaml.UnmarshalStrict([]byte(document), p); err != nil {
			return nil, fmt.Errorf("read pod: %w", err)
		}
		p.Namespace = v1.NamespaceDefault
		pods = append(pods, p)
	}
	return pods, nil
}
