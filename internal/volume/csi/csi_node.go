package csi

import (
	"context"
	"time"
)

// csiNodeRetry is how long to wait after a CSINode could not be written.
const csiNodeRetry = 5 * time.Second

// EnsureCSINodeAfter returns a function that writes the CSINode object once the Node, which owns
// it, exists.
func (p *Plugin) EnsureCSINodeAfter(registered <-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-registered:
			p.retryCSINode(ctx)
		case <-ctx.Done():
		}
		return nil
	}
}

func (p *Plugin) retryCSINode(ctx context.Context) {
	for ctx.Err() == nil {
		err := p.EnsureCSINode(ctx)
		if err == nil {
			return
		}
		p.deps.Log.Warn("csi: cannot write CSINode, will retry", "in", csiNodeRetry, "err", err)
		select {
		case <-p.deps.Clock.After(csiNodeRetry):
		case <-ctx.Done():
		}
	}
}
