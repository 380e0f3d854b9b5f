package credentialplugin

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Concurrent equal requests share one run of the plugin.
func TestConcurrentRequestsShareRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := inFlightRequests{byKey: map[requestKey]*inFlightRequest{}}
		var runs, served atomic.Int32
		respond := make(chan struct{})
		find := func() (logins, error) {
			runs.Add(1)
			<-respond
			return logins{"a.example.com": {Username: "u"}}, nil
		}
		request := func(ctx context.Context, key requestKey) {
			if got, err := f.share(ctx, key, find); err == nil && got["a.example.com"].Username == "u" {
				served.Add(1)
			}
		}
		var wait sync.WaitGroup
		for range 5 {
			wait.Go(func() { request(t.Context(), requestKey{"a.example.com/app", ""}) })
		}
		canceled, cancel := context.WithCancel(t.Context())
		synctest.Wait()
		wait.Go(func() { request(canceled, requestKey{"a.example.com/app", ""}) })
		wait.Go(func() { request(t.Context(), requestKey{"a.example.com/app", "another identity"}) })
		synctest.Wait()
		cancel() // returns before the response
		synctest.Wait()
		close(respond)
		wait.Wait()
		if runs.Load() != 2 || served.Load() != 6 || len(f.byKey) > 0 {
			t.Errorf("%d runs served %d, still in inFlightRequest: %v", runs.Load(), served.Load(), f.byKey)
		}
	})
}

// A canceled request is no result for those that wait for it.
func TestCanceledRequestIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := inFlightRequests{byKey: map[requestKey]*inFlightRequest{}}
		key := requestKey{"a.example.com/app", ""}
		first, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() {
			_, err := f.share(first, key, func() (logins, error) {
				<-first.Done()
				return nil, first.Err()
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("canceled caller: %v", err)
			}
		})
		synctest.Wait()
		wait.Go(func() {
			got, err := f.share(t.Context(), key, func() (logins, error) { return logins{"x": {}}, nil })
			if err != nil || len(got) != 1 {
				t.Errorf("waiting caller: %v, %v", got, err)
			}
		})
		synctest.Wait()
		cancel()
		wait.Wait()
	})
}
