package server

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// PodViewDeps are the dependencies of a PodView.
type PodViewDeps struct {
	// Desired lists the desired pods.
	Desired interface {
		List() []*v1.Pod
		GetByFullName(fullName string) (*v1.Pod, bool)
	}
	// Observer lists the pods in the runtime.
	Observer interface {
		Get(types.UID) (pod.Observed, bool)
		List() []pod.Observed
	}
	// Statuses holds the status last derived for each pod. It notifies subscribers of a
	// container's exit after Observer has observed it.
	Statuses interface {
		Get(types.UID) (v1.PodStatus, bool)
		Subscribe(changed func())
	}
}

// PodView combines desired pods, their status and the runtime's state for the server.
type PodView struct {
	deps PodViewDeps

	mu    sync.Mutex
	waits map[*exitWait]bool
}

// exitWait waits for the exit of a container.
type exitWait struct {
	uid         types.UID
	containerID string
	exited      chan struct{}
}

// NewPodView returns a view that is subscribed to status changes.
func NewPodView(deps PodViewDeps) (*PodView, error) {
	if err := require.Set("new pod view", map[string]any{
		"Desired": deps.Desired, "Observer": deps.Observer, "Statuses": deps.Statuses,
	}); err != nil {
		return nil, err
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

// RunningPods lists the pods with running containers.
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
	withStatus := *p
	if s, ok := v.deps.Statuses.Get(p.UID); ok {
		withStatus.Status = s
	}
	return &withStatus
}

// Pod finds a desired pod by its name.
func (v *PodView) Pod(namespace, name string) (*v1.Pod, bool) {
	p, ok := v.deps.Desired.GetByFullName(pod.Ref{Namespace: namespace, Name: name}.FullName())
	if !ok {
		return nil, false
	}
	return v.WithStatus(p), true
}

// Observed returns the state of a pod in the runtime, or nil.
func (v *PodView) Observed(uid types.UID) *pod.Observed {
	if o, ok := v.deps.Observer.Get(uid); ok {
		return &o
	}
	return nil
}

// Exited returns a channel that is closed once the container does not run.
func (v *PodView) Exited(uid types.UID, containerID string) (<-chan struct{}, func()) {
	w := &exitWait{uid: uid, containerID: containerID, exited: make(chan struct{})}
	v.mu.Lock()
	v.waits[w] = true
	v.mu.Unlock()
	v.releaseWaits() // the container may have exited before
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
		if !v.isRunning(w) {
			close(w.exited)
			delete(v.waits, w)
		}
	}
}

func (v *PodView) isRunning(w *exitWait) bool {
	for _, c := range v.Observed(w.uid).Live() {
		if c.ID == w.containerID {
			return true
		}
	}
	return false
}
