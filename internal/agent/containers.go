package agent

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// containers leads the server from names to containers, and tells it when one has ended.
type containers struct {
	*Agent
	mu      sync.Mutex
	waiting map[*ending]bool
}

// ending is somebody's wait for the end of a container.
type ending struct {
	uid  types.UID
	id   string
	done chan struct{}
}

func (a *Agent) newContainers() *containers {
	c := &containers{Agent: a, waiting: map[*ending]bool{}}
	// A container's end changes its pod's status, after the observer has seen it.
	a.pods.status.Subscribe(c.announce)
	return c
}

func (c *containers) Pod(namespace, name string) (*v1.Pod, bool) {
	p, ok := c.pods.desired.GetByFullName(pod.Ref{Namespace: namespace, Name: name}.FullName())
	if !ok {
		return nil, false
	}
	return c.withStatus(p), true
}

func (c *containers) Observed(uid types.UID) *pod.Observed {
	if o, ok := c.pods.observer.Get(uid); ok {
		return &o
	}
	return nil
}

// Ended returns a channel that is closed once the container does not run.
func (c *containers) Ended(uid types.UID, id string) (<-chan struct{}, func()) {
	e := &ending{uid: uid, id: id, done: make(chan struct{})}
	c.mu.Lock()
	c.waiting[e] = true
	c.mu.Unlock()
	c.announce() // it may have ended before anybody waited
	return e.done, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, e)
	}
}

// announce tells those who wait that their container has ended.
func (c *containers) announce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := range c.waiting {
		if !c.runs(e) {
			close(e.done)
			delete(c.waiting, e)
		}
	}
}

func (c *containers) runs(e *ending) bool {
	for _, seen := range c.Observed(e.uid).Live() {
		if seen.ID == e.id {
			return true
		}
	}
	return false
}
