package eviction

import "context"

// runInBackground runs slow work outside the loop, so that the loop keeps watching memory.
// The loop, which owns all state, calls the function that work returns and then checks again.
func (e *Evictor) runInBackground(ctx context.Context, work func() (complete func())) {
	e.background.Go(func() {
		complete := work()
		select {
		case e.completions <- complete:
		case <-ctx.Done():
		}
	})
}
