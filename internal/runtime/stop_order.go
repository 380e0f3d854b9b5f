package runtime

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"swiftlet/internal/pod"
)

// stopInOrder stops the containers of a pod and returns when all have ended. All preStop
// hooks run at once; then main containers end together, and sidecars after them, the last
// declared first, as each may serve those declared after it.
//
// The pod ends, so every hook has a second at least, also without a grace period.
func (r *Runtime) stopInOrder(ctx context.Context, p *v1.Pod, containers []pod.Container, how Stop) error {
	how.Grace = podGrace(p, how.Grace)
	order := newStopOrder(p, containers)
	return sideBySide(containers, func(c *pod.Container) error {
		defer order.ended(c.Name)
		mine := how
		mine.Turn = order.turn(c.Name)
		return r.stopContainer(ctx, p, c, mine)
	})
}

// podGrace is the grace period of a pod that ends, in seconds.
func podGrace(p *v1.Pod, override *int64) *int64 {
	if grace := pod.GracePeriod(p, override); grace != nil && *grace > 1 {
		return grace
	}
	return ptr.To[int64](1)
}

// stopOrder lets containers wait for those that must end before them.
type stopOrder struct {
	// awaits lists whose end a container waits for.
	awaits map[string][]string
	// running has a channel for each container, closed when its last instance ended.
	running map[string]chan struct{}

	mu        sync.Mutex
	instances map[string]int
}

func newStopOrder(p *v1.Pod, containers []pod.Container) *stopOrder {
	o := &stopOrder{awaits: map[string][]string{}, running: map[string]chan struct{}{}, instances: map[string]int{}}
	for _, c := range containers {
		o.instances[c.Name]++
		if o.running[c.Name] == nil {
			o.running[c.Name] = make(chan struct{})
		}
	}
	var before []string
	for _, c := range p.Spec.Containers {
		before = append(before, c.Name)
	}
	for i := len(p.Spec.InitContainers) - 1; i >= 0; i-- {
		if c := &p.Spec.InitContainers[i]; pod.IsSidecar(c) {
			o.awaits[c.Name] = before[:len(before):len(before)]
			before = append(before, c.Name)
		}
	}
	return o
}

// turn waits for the containers that must end before name; nil where there are none.
func (o *stopOrder) turn(name string) func(context.Context) {
	awaits := o.awaits[name]
	if len(awaits) == 0 {
		return nil
	}
	return func(ctx context.Context) {
		for _, other := range awaits {
			ch := o.running[other]
			if ch == nil {
				continue
			}
			select {
			case <-ch:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (o *stopOrder) ended(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.instances[name]--; o.instances[name] == 0 {
		close(o.running[name])
	}
}
