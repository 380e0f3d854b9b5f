package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// board shows each pod's status to people as it changes.
type board struct {
	*Agent
	changed chan struct{}
}

func (a *Agent) newBoard() *board {
	b := &board{Agent: a, changed: make(chan struct{}, 1)}
	a.pods.status.Subscribe(func() {
		select {
		case b.changed <- struct{}{}:
		default:
		}
	})
	return b
}

func (b *board) run(ctx context.Context) error {
	shown := map[types.UID]bool{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.changed:
		}
		present := map[types.UID]bool{}
		for _, p := range b.pods.desired.List() {
			if _, has := b.pods.status.Get(p.UID); has {
				present[p.UID] = true
				b.opts.Show(b.withStatus(p))
			}
		}
		for uid := range shown {
			if !present[uid] {
				b.opts.Forget(uid)
			}
		}
		shown = present
	}
}
