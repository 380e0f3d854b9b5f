package image

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/test/fakecri"
	"swiftlet/test/poll"
)

// trickle makes the registry of all images whose name begins with slow deliver next to nothing.
func trickle(b *fixture) {
	b.runtime.SetInterceptor(func(ctx context.Context, call fakecri.Call, act func() (any, error)) (any, error) {
		pull, ok := call.Request.(*runtimeapi.PullImageRequest)
		if ok && strings.HasPrefix(pull.Image.Image, "slow") {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return act()
	})
}

// A registry that delivers next to nothing blocks the other images of a node with serial pulls only until
// stallTimeout.
func TestSlowPullDoesNotBlockOthers(t *testing.T) {
	b := newFixture(t, Config{Serialize: true})
	trickle(b)
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	defer callers.Wait()
	defer cancel()
	slow := testPod("slow", "slow:1", "")
	callers.Go(func() { _, _ = b.Ensure(ctx, slow, &slow.Spec.Containers[0], nil) })
	poll.Until(t, "the slow pull", func() bool { return b.runtime.Count("PullImage") == 1 })
	b.runtime.Publish("app:1", 1)
	pulled := make(chan error, 1)
	go func() { _, err := b.ensure(testPod("u", "app:1", "")); pulled <- err }()
	poll.Until(t, "the timer", func() bool { return b.clock.HasWaiters() })
	b.clock.Step(stallTimeout)
	poll.Until(t, "the other pull", func() bool { return len(pulled) == 1 })
	if err := <-pulled; err != nil {
		t.Error(err)
	}
	b.events.mu.Lock()
	defer b.events.mu.Unlock()
	if !strings.Contains(strings.Join(b.events.seen, "\n"), "SlowPull") {
		t.Errorf("no event names the slow pull: %q", b.events.seen)
	}
}

// The number of pulls that continue without a slot is limited.
func TestStalledPullsAreLimited(t *testing.T) {
	b := newFixture(t, Config{Serialize: true})
	trickle(b)
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	defer callers.Wait()
	defer cancel()
	errs := make(chan error, maxStalled+1)
	for i := range maxStalled + 1 {
		p := testPod(fmt.Sprint(i), fmt.Sprintf("slow%d:1", i), "")
		callers.Go(func() {
			_, err := b.Ensure(ctx, p, &p.Spec.Containers[0], nil)
			errs <- err
		})
		poll.Until(t, fmt.Sprintf("slow pull %d", i), func() bool { return b.runtime.Count("PullImage") == i+1 && b.clock.HasWaiters() })
		b.clock.Step(stallTimeout)
	}
	poll.Until(t, "a canceled pull", func() bool { return len(errs) == 1 })
	var failed *Error
	if err := <-errs; !errors.As(err, &failed) || !strings.Contains(failed.Message, "canceled after 5m") {
		t.Errorf("got %v, want a pull that is canceled and retried", err)
	}
	if len(b.slots.free) != 0 {
		t.Error("a slot is taken")
	}
}

// Pulls of one namespace that all stall delay a pull of another by one stallTimeout, not by one for each.
func TestNamespacesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pullSlots{clock: clock.RealClock{}, free: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		var pulls sync.WaitGroup
		pull := func(namespace string, began chan<- struct{}) {
			pulls.Go(func() {
				_, done, err := s.acquire(ctx, ctx, namespace, func() {})
				if err != nil {
					return
				}
				began <- struct{}{}
				<-ctx.Done()
				done()
			})
			synctest.Wait()
		}
		slow, other := make(chan struct{}, 5), make(chan struct{}, 1)
		for range cap(slow) {
			pull("slow", slow)
		}
		pull("other", other)
		time.Sleep(stallTimeout)
		synctest.Wait()
		if len(slow) != 1 || len(other) != 1 {
			t.Errorf("after %v: %d pulls of the one namespace began, %d of the other", stallTimeout, len(slow), len(other))
		}
		cancel()
		pulls.Wait()
		if len(s.turns) != 0 || len(s.free) != 0 || s.stalled != 0 {
			t.Errorf("left: turns %v, %d slots, %d stalled", s.turns, len(s.free), s.stalled)
		}
	})
}

// A namespace that waits for its turn with an image does not keep others from pulling the same image, and gets it
// from them.
func TestNamespacesShareImageButNotTurns(t *testing.T) {
	b := newFixture(t, Config{Serialize: true})
	b.runtime.Publish("app:1", 1)
	trickle(b)
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	defer callers.Wait()
	defer cancel()
	var pulled, requests atomic.Int32
	ensure := func(namespace, image string) {
		p := testPod(namespace+image, image, "")
		p.Namespace = namespace
		callers.Go(func() {
			if _, err := b.Ensure(ctx, p, &p.Spec.Containers[0], nil); err == nil {
				pulled.Add(1)
			}
		})
		n := int(requests.Add(1))
		poll.Until(t, "a waiting request for "+image, func() bool { return b.waiting() == n })
	}
	for i := range 5 {
		ensure("slow", fmt.Sprintf("slow%d:1", i))
	}
	for _, namespace := range []string{"slow", "other", "third"} {
		ensure(namespace, "app:1")
	}
	poll.Until(t, "the slow pull", func() bool { return b.runtime.Count("PullImage") == 1 })
	b.clock.Step(stallTimeout)
	poll.Until(t, "the image in all namespaces", func() bool { return pulled.Load() == 3 })
	poll.Until(t, "the next slow pull", func() bool { return b.runtime.Count("PullImage") >= 3 })
	if n := b.runtime.Count("PullImage"); n != 3 {
		t.Errorf("%d pulls, want one of app:1 and two of slow images", n)
	}
}

// waiting is the number of requests that wait for a slot.
func (b *fixture) waiting() int {
	b.slots.mu.Lock()
	defer b.slots.mu.Unlock()
	n := 0
	for _, of := range b.slots.turns {
		n += of.pulls
	}
	return n
}
