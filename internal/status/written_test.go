package status

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
)

func TestWrittenWaitsForTheAPIServer(t *testing.T) {
	run(t, func(b *bench) {
		b.server.took = time.Second
		b.server.fail(errDown)
		b.Set(aPod("a"), phase(v1.PodFailed))
		synctest.Wait() // the first request, which fails, is under way
		began := time.Now()
		if err := b.Written(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
		if log := b.server.takeLog(); log != "a a Failed" {
			b.Errorf("returned after %v, when the server had seen %q", time.Since(began), log)
		}
		if err := b.Written(b.Context(), "a"); err != nil || time.Since(began) > 3*time.Second {
			b.Errorf("waits although all is written: %v after %v", err, time.Since(began))
		}
	})
}

func TestWrittenEndsWithoutAWrite(t *testing.T) {
	run(t, func(b *bench) {
		for range 1000 {
			b.server.fail(errDown)
		}
		if err := b.Written(b.Context(), "never set"); err != nil {
			b.Error(err)
		}
		b.Set(aPod("a"), phase(v1.PodFailed))
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		if err := b.Written(ctx, "a"); err == nil {
			b.Error("the status counts as written during an outage")
		}
		forgotten := make(chan error, 1)
		go func() { forgotten <- b.Written(b.Context(), "a") }()
		synctest.Wait()
		b.Forget("a")
		if err := <-forgotten; err != nil {
			b.Error(err)
		}
	})
}
