package credentialplugin

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Those who ask the same at the same time are told by one run of the plugin.
func TestPodsShareARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flights{current: map[flightKey]*flight{}}
		var runs, told atomic.Int32
		answer := make(chan struct{})
		find := func() (logins, error) {
			runs.Add(1)
			<-answer
			return logins{"a.example.com": {Username: "u"}}, nil
		}
		ask := func(ctx context.Context, key flightKey) {
			if got, err := f.share(ctx, key, find); err == nil && got["a.example.com"].Username == "u" {
				told.Add(1)
			}
		}
		var wait sync.WaitGroup
		for range 5 {
			wait.Go(func() { ask(t.Context(), flightKey{"a.example.com/app", ""}) })
		}
		gone, leave := context.WithCancel(t.Context())
		synctest.Wait()
		wait.Go(func() { ask(gone, flightKey{"a.example.com/app", ""}) })
		wait.Go(func() { ask(t.Context(), flightKey{"a.example.com/app", "somebody else"}) })
		synctest.Wait()
		leave() // does not wait for the answer
		synctest.Wait()
		close(answer)
		wait.Wait()
		if runs.Load() != 2 || told.Load() != 6 || len(f.current) > 0 {
			t.Errorf("%d runs told %d, left %v", runs.Load(), told.Load(), f.current)
		}
	})
}

// That the one who asks gives up is no answer for those who wait.
func TestGivingUpIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flights{current: map[flightKey]*flight{}}
		key := flightKey{"a.example.com/app", ""}
		first, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() {
			_, err := f.share(first, key, func() (logins, error) {
				<-first.Done()
				return nil, first.Err()
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("who gave up is told %v", err)
			}
		})
		synctest.Wait()
		wait.Go(func() {
			got, err := f.share(t.Context(), key, func() (logins, error) { return logins{"x": {}}, nil })
			if err != nil || len(got) != 1 {
				t.Errorf("who waited is told %v, %v", got, err)
			}
		})
		synctest.Wait()
		cancel()
		wait.Wait()
	})
}
