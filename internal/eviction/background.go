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

// contained calls f. A panic, which the usage or the spec of one pod may cause, ends only this call: the next check
// tries again.
func (e *Evictor) contained(f func(), attrs ...any) {
	_ = e.deps.Panics.Call("eviction", func() error { f(); return nil }, attrs...)
}
