package csi

import (
	"context"
	"time"
)

// csiNodeRetry is how long to wait after a CSINode could not be written.
const csiNodeRetry = 5 * time.Second

// EnsureCSINodeWhenRegistered writes the CSINode object once the Node, which owns it, exists.
func (p *Plugin) EnsureCSINodeWhenRegistered(ctx context.Context, registered <-chan struct{}) {
	select {
	case <-registered:
	case <-ctx.Done():
		return
	}
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
