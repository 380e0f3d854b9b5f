package agent

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/notify"
	"swiftlet/internal/server"
	"swiftlet/internal/status"
)

// board reports the status of each pod to those who show it to people, as it changes.
type board struct {
	view     *server.PodView
	statuses *status.Publisher
	show     func(*v1.Pod)
	forget   func(types.UID)
	changed  notify.Signal
}

func newBoard(view *server.PodView, statuses *status.Publisher, opts Options) *board {
	b := &board{view: view, statuses: statuses, show: opts.Show, forget: opts.Forget, changed: notify.New()}
	statuses.Subscribe(b.changed.Notify)
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
		for _, p := range b.view.Pods().Items {
			if _, derived := b.statuses.Get(p.UID); !derived {
				continue // its worker has not begun, or is done with it
			}
			present[p.UID] = true
			b.show(&p)
		}
		for uid := range shown {
			if !present[uid] {
				b.forget(uid)
			}
		}
		shown = present
	}
}
