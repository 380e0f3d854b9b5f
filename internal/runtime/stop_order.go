package runtime

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"swiftlet/internal/pod"
)

// stopInOrder stops the containers of a pod and returns when all have exited. All preStop hooks
// run at the same time; then the main containers stop together, and then the sidecars, in
// reverse order, as each may serve those declared after it.
//
// Every hook has at least one second, even without a grace period.
func (r *Runtime) stopInOrder(ctx context.Context, p *v1.Pod, containers []pod.Container, how StopOptions) error {
	how.Grace = podGrace(p, how.Grace)
	order := newStopOrder(p, containers)
	return inParallel(containers, func(c *pod.Container) error {
		defer order.exited(c.Name)
		own := how
		own.Turn = order.turn(c.Name)
		if err := r.stopContainer(ctx, p, c, own); err != nil {
			return &killError{action: "KillContainer", target: c.Name, err: err}
		}
		return nil
	})
}

// podGrace returns the grace period of a terminating pod, in seconds.
func podGrace(p *v1.Pod, override *int64) *int64 {
	if grace := pod.GracePeriod(p, override); grace != nil && *grace > 1 {
		return grace
	}
	return ptr.To[int64](1)
}

// stopOrder makes containers wait for those that must exit before them.
type stopOrder struct {
	// awaits lists the containers that a container waits for.
	awaits map[string][]string
	// running has a channel for each container, closed when its last instance has exited.
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

// turn returns a function that waits for the containers that must exit before name, or nil if
// there are none.
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

func (o *stopOrder) exited(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.instances[name]--; o.instances[name] == 0 {
		close(o.running[name])
	}
}
