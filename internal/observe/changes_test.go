package observe

import (
	"context"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestAPodWaitsOnce(t *testing.T) {
	c := newChanges()
	for range 1000 { // nobody reads, and nothing blocks
		c.add("a")
		c.add("b")
	}
	if first, _ := c.next(); first != "a" {
		t.Errorf("first: %s", first)
	}
	c.add("a") // it is in hand, so it must come again
	for _, want := range []types.UID{"b", "a"} {
		if got, _ := c.next(); got != want {
			t.Errorf("next: %s, want %s", got, want)
		}
	}
	if uid, ok := c.next(); ok {
		t.Errorf("left: %s", uid)
	}
}

func TestEveryChangeIsDelivered(t *testing.T) {
	c := newChanges()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { c.run(ctx) })
	for range 100 {
		c.add("a")
		if got := <-c.out; got != "a" {
			t.Fatalf("got %s", got)
		}
	}
	cancel()
	running.Wait()
}
