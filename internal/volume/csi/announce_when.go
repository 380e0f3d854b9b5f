package csi

import (
	"context"
	"time"
)

// announceRetry is how long to wait after a CSINode could not be written.
const announceRetry = 5 * time.Second

// AnnounceWhenRegistered writes the CSINode object once the Node, which owns it, exists.
func (p *Plugin) AnnounceWhenRegistered(ctx context.Context, registered <-chan struct{}) {
	select {
	case <-registered:
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		err := p.Announce(ctx)
		if err == nil {
			return
		}
		p.deps.Log.Warn("csi: cannot write CSINode, will retry", "in", announceRetry, "err", err)
		select {
		case <-p.deps.Clock.After(announceRetry):
		case <-ctx.Done():
		}
	}
}
