package controllers

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"swiftlet/apiserver/internal/demand"
)

// TestStartIsRetried: a controller whose start has failed is needed nevertheless, and others do not wait for it.
func TestStartIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		needed := demand.New()
		needed.Add(demand.ServiceProxy, demand.Deployment)
		began := time.Now()
		var tries []time.Duration // of the proxy
		running := map[demand.Controller]time.Duration{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			starter{needed: needed.First(), created: func() {}, create: func(_ context.Context, name demand.Controller) (runner, error) {
				if name == demand.ServiceProxy {
					if tries = append(tries, time.Since(began)); len(tries) < 4 {
						return nil, errors.New("no nftables")
					}
				}
				running[name] = time.Since(began)
				return func(ctx context.Context, _ int) { <-ctx.Done() }, nil
			}}.run(ctx)
		}()
		time.Sleep(time.Hour)
		cancel()
		<-done
		if want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}; !slices.Equal(tries, want) {
			t.Errorf("tried at %v, want %v", tries, want)
		}
		if running[demand.ServiceProxy] != 7*time.Second || running[demand.Deployment] != 0 || len(running) != 2 {
			t.Errorf("started at %v, want the proxy at 7s and the other at once", running)
		}
	})
}
