package server

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/notify"
)

// Board reports the status of each pod, as it changes, to a program that shows it to people.
type Board struct {
	view    *PodView
	show    func(*v1.Pod)
	forget  func(types.UID)
	changed notify.Signal
}

// NewBoard makes a board that calls show with each pod after a change of any, and forget for
// each that is gone.
func NewBoard(view *PodView, show func(*v1.Pod), forget func(types.UID)) *Board {
	b := &Board{view: view, show: show, forget: forget, changed: notify.New()}
	view.deps.Statuses.Subscribe(b.changed.Notify)
	return b
}

// Run reports until ctx is done.
func (b *Board) Run(ctx context.Context) error {
	shown := map[types.UID]bool{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.changed:
		}
		present := map[types.UID]bool{}
		for _, p := range b.view.Pods().Items {
			if _, derived := b.view.deps.Statuses.Get(p.UID); !derived {
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
