package server

import (
	"context"
	"errors"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// PodViewDeps are where a PodView reads.
type PodViewDeps struct {
	// Desired has the pods that the sources want.
	Desired interface {
		List() []*v1.Pod
		GetByFullName(fullName string) (*v1.Pod, bool)
	}
	// Observer has what the runtime holds.
	Observer interface {
		Get(types.UID) (pod.Observed, bool)
		List() []pod.Observed
	}
	// Statuses has what was last derived of each pod. A container's exit changes its pod's
	// status, after the observer has seen it.
	Statuses interface {
		Get(types.UID) (v1.PodStatus, bool)
		Subscribe(changed func())
	}
}

// PodView is the pods of this node as the server shows them.
type PodView struct {
	deps PodViewDeps

	mu    sync.Mutex
	waits map[*exitWait]bool
}

// exitWait is a caller's wait for the exit of a container.
type exitWait struct {
	uid         types.UID
	containerID string
	exited      chan struct{}
}

// NewPodView makes a view and subscribes it to changes of status.
func NewPodView(deps PodViewDeps) (*PodView, error) {
	if deps.Desired == nil || deps.Observer == nil || deps.Statuses == nil {
		return nil, errors.New("new pod view: desired pods, observer and statuses are needed")
	}
	v := &PodView{deps: deps, waits: map[*exitWait]bool{}}
	deps.Statuses.Subscribe(v.releaseWaits)
	return v, nil
}

// Pods lists the desired pods, each with its status as last derived.
func (v *PodView) Pods() *v1.PodList {
	list := newPodList()
	for _, p := range v.deps.Desired.List() {
		list.Items = append(list.Items, *v.WithStatus(p))
	}
	return list
}

// RunningPods lists the pods of which the runtime holds running containers.
func (v *PodView) RunningPods(context.Context) (*v1.PodList, error) {
	list := newPodList()
	for _, o := range v.deps.Observer.List() {
		live := o.Live()
		if len(live) == 0 {
			continue
		}
		p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID}}
		for _, c := range live {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: c.Name, Image: c.Image})
		}
		list.Items = append(list.Items, p)
	}
	return list, nil
}

func newPodList() *v1.PodList {
	return &v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []v1.Pod{}}
}

// WithStatus returns a copy of the pod with its status as last derived.
func (v *PodView) WithStatus(p *v1.Pod) *v1.Pod {
	shown := *p
	if s, ok := v.deps.Statuses.Get(p.UID); ok {
		shown.Status = s
	}
	return &shown
}

// Pod finds a desired pod by its name.
func (v *PodView) Pod(namespace, name string) (*v1.Pod, bool) {
	p, ok := v.deps.Desired.GetByFullName(pod.Ref{Namespace: namespace, Name: name}.FullName())
	if !ok {
		return nil, false
	}
	return v.WithStatus(p), true
}

// Observed is what the runtime holds of a pod, nil for nothing.
func (v *PodView) Observed(uid types.UID) *pod.Observed {
	if o, ok := v.deps.Observer.Get(uid); ok {
		return &o
	}
	return nil
}

// Ended returns a channel that is closed once the container does not run.
func (v *PodView) Ended(uid types.UID, containerID string) (<-chan struct{}, func()) {
	w := &exitWait{uid: uid, containerID: containerID, exited: make(chan struct{})}
	v.mu.Lock()
	v.waits[w] = true
	v.mu.Unlock()
	v.releaseWaits() // it may have exited before the wait began
	return w.exited, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.waits, w)
	}
}

// releaseWaits ends the waits for containers that do not run.
func (v *PodView) releaseWaits() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for w := range v.waits {
		if !v.runs(w) {
			close(w.exited)
			delete(v.waits, w)
		}
	}
}

func (v *PodView) runs(w *exitWait) bool {
	for _, c := range v.Observed(w.uid).Live() {
		if c.ID == w.containerID {
			return true
		}
	}
	return false
}
