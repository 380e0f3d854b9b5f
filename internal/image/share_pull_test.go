package image

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/test/fakecri"
	"swiftlet/test/poll"
)

// gate blocks pulls until open is called.
func gate(b *fixture) (open func()) {
	closed := make(chan struct{})
	b.runtime.Inject("PullImage", fakecri.Fault{Inspect: func(ctx context.Context) {
		select {
		case <-closed:
		case <-ctx.Done():
		}
	}})
	return sync.OnceFunc(func() { close(closed) })
}

// many ensures the image for n pods concurrently and returns the number of pulls.
func many(t *testing.T, b *fixture, n int, policy v1.PullPolicy) int {
	t.Helper()
	open := gate(b)
	defer open()
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			if _, err := b.ensure(testPod(fmt.Sprint(i), "app:1", policy)); err != nil {
				t.Error(err)
			}
		})
	}
	poll.Until(t, "all pods wait", func() bool {
		b.events.mu.Lock()
		defer b.events.mu.Unlock()
		return len(b.events.seen) == n && b.runtime.Count("PullImage") > 0
	})
	open()
	callers.Wait()
	return b.runtime.Count("PullImage")
}

func TestPodsSharePull(t *testing.T) {
	b := newFixture(t, Config{})
	b.runtime.Publish("app:1", 1)
	if n := many(t, b, 20, v1.PullIfNotPresent); n != 1 {
		t.Errorf("%d pulls for 20 pods", n)
	}
}

func TestPullIsNotSharedAcrossCredentials(t *testing.T) {
	b := newFixture(t, Config{})
	b.runtime.Publish("app:1", 1)
	var mu sync.Mutex
	n := 0
	b.credentials = func(context.Context, *v1.Pod, string) ([]Credential, error) {
		mu.Lock()
		defer mu.Unlock()
		n++
		return []Credential{login{username: fmt.Sprint(n)}.credential()}, nil
	}
	if n := many(t, b, 5, v1.PullIfNotPresent); n != 5 {
		t.Errorf("%d pulls for 5 pods of different users", n)
	}
}

// The clock stands still, so no pull begins before a request: the pull in progress is recent
// enough for the policy Always.
func TestPullAlwaysSharesRecentPull(t *testing.T) {
	b := newFixture(t, Config{})
	b.runtime.Publish("app:1", 1)
	if n := many(t, b, 20, v1.PullAlways); n != 1 {
		t.Errorf("%d pulls", n)
	}
}

func TestPullAlwaysIgnoresOlderPull(t *testing.T) {
	b := newFixture(t, Config{})
	b.runtime.Publish("app:1", 1)
	open := gate(b)
	var callers sync.WaitGroup
	for i := range 2 {
		callers.Go(func() { _, _ = b.ensure(testPod(fmt.Sprint(i), "app:1", v1.PullAlways)) })
		poll.Until(t, "request", func() bool {
			b.events.mu.Lock()
			defer b.events.mu.Unlock()
			return len(b.events.seen) == i+1 && b.runtime.Count("PullImage") == 1
		})
		b.clock.SetTime(b.clock.Now().Add(time.Second))
	}
	open()
	callers.Wait()
	if n := b.runtime.Count("PullImage"); n != 2 {
		t.Errorf("%d pulls, want 2", n)
	}
}

func TestCanceledPullDoesNotFailOthers(t *testing.T) {
	b := newFixture(t, Config{})
	b.runtime.Publish("app:1", 1)
	open := gate(b)
	defer open()
	ctx, cancel := context.WithCancel(context.Background())
	first, second := make(chan error, 1), make(chan error, 1)
	p := testPod("first", "app:1", "")
	go func() {
		_, err := b.Ensure(ctx, p, &p.Spec.Containers[0], nil)
		first <- err
	}()
	poll.Until(t, "first pull", func() bool { return b.runtime.Count("PullImage") == 1 })
	go func() {
		_, err := b.ensure(testPod("second", "app:1", ""))
		second <- err
	}()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("canceled caller: %v", err)
	}
	poll.Until(t, "second pull", func() bool { return b.runtime.Count("PullImage") == 2 })
	open()
	if err := <-second; err != nil {
		t.Errorf("second caller: %v", err)
	}
	if left, _ := b.backoff.remaining("first_app:1", fingerprintOf(nil)); left != 0 {
		t.Error("a canceled pull starts a back-off")
	}
}

func TestParallelPullLimits(t *testing.T) {
	for _, test := range []struct {
		name string
		cfg  Config
		want int // pulls at a time, of five images
	}{
		{"no limit", Config{}, 5},
		{"two at a time", Config{MaxParallel: 2}, 2},
		{"serialized", Config{Serialize: true}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newFixture(t, test.cfg)
			open := gate(b)
			var callers sync.WaitGroup
			for i := range 5 {
				name := fmt.Sprintf("app%d:1", i)
				b.runtime.Publish(name, 1)
				callers.Go(func() {
					if _, err := b.ensure(testPod("u", name, "")); err != nil {
						t.Error(err)
					}
				})
			}
			poll.Until(t, "pulls in progress", func() bool {
				b.events.mu.Lock()
				defer b.events.mu.Unlock()
				return len(b.events.seen) == 5 && b.runtime.Count("PullImage") == test.want
			})
			if n := len(b.slots.free); b.slots.free != nil && n != test.want {
				t.Errorf("%d slots taken", n)
			}
			open()
			callers.Wait()
		})
	}
}

func TestPullQPS(t *testing.T) {
	b := newFixture(t, Config{QPS: 1, Burst: 2})
	var failed *Error
	for i, want := range []string{"", "", "pull QPS exceeded"} {
		name := fmt.Sprintf("app%d:1", i)
		b.runtime.Publish(name, 1)
		_, err := b.ensure(testPod("u", name, ""))
		if got := errors.As(err, &failed); got != (want != "") || got && failed.Message != want {
			t.Errorf("pull %d: %v, want %q", i, err, want)
		}
	}
}
