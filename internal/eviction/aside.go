package eviction

import "context"

// aside does work that may take long beside the loop, so that memory goes on being looked at.
// What work returns is done in the loop, to which all state belongs, and then it looks again.
func (e *Evictor) aside(ctx context.Context, work func() (then func())) {
	e.asides.Go(func() {
		then := work()
		select {
		case e.thens <- then:
		case <-ctx.Done():
		}
	})
}
