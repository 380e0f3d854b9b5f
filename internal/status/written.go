package status

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// Written waits until the API server has the latest status of the pod, or has no object for
// it. It returns an error only if ctx ends before that.
func (p *Publisher) Written(ctx context.Context, uid types.UID) error {
	for {
		wait := p.awaitWrite(uid)
		if wait == nil {
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitWrite returns a channel that is closed after the next write of any pod, or nil if
// the status of this pod is written.
func (p *Publisher) awaitWrite(uid types.UID) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, known := p.pods[uid]
	if p.client == nil || !known || e.gone || !e.dirty && !e.writing || p.apiObject(e.pod) == nil {
		return nil
	}
	wait := make(chan struct{})
	p.waiters = append(p.waiters, wait)
	return wait
}

func (p *Publisher) wakeWaiters() {
	for _, wait := range p.waiters {
		close(wait)
	}
	p.waiters = nil
}
