package probe

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// maxOutput bounds what an event says of a probe's output.
const maxOutput = 10 * 1024

// tell makes an event of an answer that the user should see.
func (p *Prober) tell(a asked, answer Answer) {
	ref := pod.EventRef(a.target.Pod, a.target.Container.Name)
	output := answer.Output
	if len(output) > maxOutput {
		output = output[:maxOutput]
	}
	switch answer.Result {
	case pod.Passed:
		if answer.Doubt {
			p.deps.Events.Eventf(ref, v1.EventTypeWarning, "ProbeWarning", "%s probe warning: %s", a.state.kind, output)
		}
	case pod.Failed:
		p.deps.Events.Eventf(ref, v1.EventTypeWarning, "Unhealthy", "%s probe failed: %s", a.state.kind, output)
	case pod.Unsure:
		p.deps.Events.Eventf(ref, v1.EventTypeWarning, "Unhealthy", "%s probe errored and resulted in unknown state: %s", a.state.kind, output)
	}
}

// changes is a queue of pods that never blocks who adds to it and holds each pod once.
type changes struct {
	mu      *sync.Mutex
	pending map[types.UID]bool
	more    chan struct{}
	out     chan types.UID
}

func newChanges() changes {
	return changes{mu: new(sync.Mutex), pending: map[types.UID]bool{}, more: make(chan struct{}, 1), out: make(chan types.UID)}
}

func (c *changes) add(uid types.UID) {
	c.mu.Lock()
	c.pending[uid] = true
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

func (c *changes) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.more:
		}
		c.mu.Lock()
		pending := c.pending
		c.pending = map[types.UID]bool{}
		c.mu.Unlock()
		for uid := range pending {
			select {
			case c.out <- uid:
			case <-ctx.Done():
				return
			}
		}
	}
}
