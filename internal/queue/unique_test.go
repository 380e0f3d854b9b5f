package queue

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestUnique(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewUnique[string]()
		for _, item := range []string{"a", "b", "a", "c", "b"} {
			q.Add(item)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go q.Run(ctx)
		synctest.Wait() // a is being delivered
		q.Add("a")
		q.Add("c")
		var got []string
		for range 4 {
			got = append(got, <-q.C())
		}
		if want := []string{"a", "b", "c", "a"}; !slices.Equal(got, want) {
			t.Errorf("delivered %q, want %q", got, want)
		}
		synctest.Wait()
		select {
		case item := <-q.C():
			t.Errorf("delivered %q again", item)
		default:
		}
		cancel() // the bubble fails if Run does not return
	})
}

func TestUniqueStopsWhileDelivering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewUnique[string]()
		q.Add("a")
		q.Add("b")
		ctx, cancel := context.WithCancel(t.Context())
		go q.Run(ctx)
		synctest.Wait()
		cancel()
	})
}

func TestUniqueDeliversEveryItem(t *testing.T) {
	q := NewUnique[string]()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { q.Run(ctx) })
	for range 100 {
		q.Add("a")
		if got := <-q.C(); got != "a" {
			t.Fatalf("got %s", got)
		}
	}
	cancel()
	running.Wait()
}
