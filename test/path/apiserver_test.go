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

// wishes are what is wanted of the node: the pods that an API server and a manifest
// directory hold. It outlives the agents that read it.
type wishes struct {
	mu      sync.Mutex
	pods    []*v1.Pod // of the API server; replaced, never changed
	static  []*v1.Pod
	version int
	changed chan struct{}
}

func newWishes() *wishes { return &wishes{changed: make(chan struct{}, 1)} }

// feed sends what is wanted, now and whenever it changes.
func (w *wishes) feed(ctx context.Context, out chan<- pod.Snapshot) {
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

// change edits what is wanted and lets the agent know.
func (w *wishes) change(edit func() error) error {
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

// find is the place of an API pod; the caller holds mu.
func (w *wishes) find(name string) (int, error) {
	i := slices.IndexFunc(w.pods, func(p *v1.Pod) bool { return p.Name == name })
	if i < 0 {
		return 0, apierrors.NewNotFound(v1.Resource("pods"), name)
	}
	return i, nil
}

// put stores a pod under a new version; the caller holds mu.
func (w *wishes) put(i int, p *v1.Pod) {
	w.version++
	p.ResourceVersion = strconv.Itoa(w.version)
	w.pods[i] = p
}

// apply creates pods, or changes their spec.
func (w *wishes) apply(text []byte) error {
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

// setStatic makes the manifests all there is in the directory.
func (w *wishes) setStatic(texts ...[]byte) error {
	var all []*v1.Pod
	for _, text := range texts {
		pods, err := parse(text)
		if err != nil {
			return err
		}
		for _, p := range pods {
			pod.MakeStatic(p, pod.Origin{Source: pod.SourceFile, NodeName: "node"})
			all = append(all, p)
		}
	}
	return w.change(func() error { w.static = all; return nil })
}

// delete asks for a pod's end; a negative grace stands for the pod's own.
func (w *wishes) delete(name string, grace int64) error {
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

// PatchStatus is the status publisher's way to the API server.
func (w *wishes) PatchStatus(_ context.Context, _, name string, patch []byte) (version string, err error) {
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

// DeletePod is how the publisher says that a pod has ended.
func (w *wishes) DeletePod(_ context.Context, _, name string, _ types.UID) error {
	return w.change(func() error {
		i, err := w.find(name)
		if err != nil {
			return err
		}
		w.pods = slices.Delete(slices.Clone(w.pods), i, i+1)
		return nil
	})
}

// list is the API server's pods, with their status as published.
func (w *wishes) list() []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.pods)
}

// parse reads the pods of a YAML file.
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
