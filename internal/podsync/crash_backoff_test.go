package podsync

import (
	"testing"
	"time"

	"swiftlet/internal/backoff"
)

func TestCrashBackoff(t *testing.T) {
	b := newCrashBackoff(backoff.Backoff{First: 10 * time.Second, Longest: 5 * time.Minute})
	key := containerKey{name: "c", hash: "h"}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// Each run lasts a second; the next start follows as soon as it may.
	for i, want := range []time.Duration{0, 10, 20, 40, 80, 160, 300, 300} {
		now = now.Add(time.Second)
		exited := now
		wait, _ := b.remaining(key, i+1, exited, now)
		if wait != want*time.Second {
			t.Fatalf("crash %d: waits %s, want %ds", i+1, wait, want)
		}
		now = now.Add(wait)
		if wait > 0 {
			if again, _ := b.remaining(key, i+1, exited, now); again != 0 {
				t.Fatalf("crash %d: still %s after the wait", i+1, again)
			}
		}
		if again, _ := b.remaining(key, i+1, exited, now); again != 0 {
			t.Fatalf("crash %d: a start that failed waits %s", i+1, again)
		}
	}
	// After ten minutes the back-off begins again.
	now = now.Add(10*time.Minute + 2*time.Second)
	if wait, _ := b.remaining(key, 9, now, now); wait != 0 {
		t.Errorf("after a long run: waits %s", wait)
	}
	// A changed container has no back-off.
	other := containerKey{name: "c", hash: "i"}
	if wait, _ := b.remaining(other, 9, now, now); wait != 0 {
		t.Errorf("changed container: waits %s", wait)
	}
}

// The back-off begins again ten minutes after a start, whatever the longest delay is. A wait that
// has begun is not shortened.
func TestCrashBackoffResets(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		curve     backoff.Backoff
		ran       time.Duration // since the second start, until the exit before the third
		wait      time.Duration
		afterNext time.Duration // the wait after one more crash at once
	}{
		"crash after a second":                              {backoff.Backoff{First: 10 * s, Longest: 300 * s}, s, 20 * s, 40 * s},
		"crash after 570 seconds":                           {backoff.Backoff{First: 10 * s, Longest: 300 * s}, 570 * s, 20 * s, 40 * s},
		"ten minutes pass during the wait":                  {backoff.Backoff{First: 10 * s, Longest: 300 * s}, 595 * s, 20 * s, 10 * s},
		"crash after ten minutes resets":                    {backoff.Backoff{First: 10 * s, Longest: 300 * s}, 601 * s, 0, 10 * s},
		"short longest delay does not reset sooner":         {backoff.Backoff{First: 10 * s, Longest: 15 * s}, 31 * s, 15 * s, 15 * s},
		"short first delay does not reset sooner":           {backoff.Backoff{First: s, Longest: 60 * s}, 121 * s, 2 * s, 4 * s},
		"short longest delay resets after ten minutes":      {backoff.Backoff{First: 10 * s, Longest: 15 * s}, 601 * s, 0, 10 * s},
		"longest delay of an hour resets after ten minutes": {backoff.Backoff{First: 10 * s, Longest: time.Hour}, 601 * s, 0, 10 * s},
	} {
		t.Run(name, func(t *testing.T) {
			b := newCrashBackoff(c.curve)
			key := containerKey{name: "c", hash: "h"}
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			// crash lets the container exit after a run, and start again as soon as it may.
			start := 0
			crash := func(ran time.Duration) time.Duration {
				now, start = now.Add(ran), start+1
				exited := now
				wait, _ := b.remaining(key, start, exited, now)
				now = now.Add(wait)
				if wait > 0 {
					if again, _ := b.remaining(key, start, exited, now); again != 0 {
						t.Fatalf("start %d: still %s after the wait", start, again)
					}
				}
				return wait
			}
			crash(s)
			crash(s)
			if wait := crash(c.ran); wait != c.wait {
				t.Errorf("waits %s, want %s", wait, c.wait)
			}
			if wait := crash(0); wait != c.afterNext {
				t.Errorf("then %s, want %s", wait, c.afterNext)
			}
		})
	}
}

// A failed liveness probe replaces a container that still runs, so the newest known exit is the one
// before. The reference kubelet was recorded with such a pod, which runs for five seconds at a
// time: it restarts after 0, 0, 10, 20 and 40 s.
func TestCrashBackoffOfKilledContainer(t *testing.T) {
	b := newCrashBackoff(backoff.Backoff{First: 10 * time.Second, Longest: 5 * time.Minute})
	key := containerKey{name: "c", hash: "h"}
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		now, start, exited int // seconds
		wait               time.Duration
	}{
		{10, 2, 5, 0},
		{15, 3, 10, 5}, {15, 3, 15, 10}, {25, 3, 15, 0},
		{30, 4, 15, 5}, {30, 4, 30, 20}, {50, 4, 30, 0},
		{55, 5, 30, 15}, {55, 5, 55, 40}, {95, 5, 55, 0},
	} {
		at := func(second int) time.Time { return epoch.Add(time.Duration(second) * time.Second) }
		wait, _ := b.remaining(key, c.start, at(c.exited), at(c.now))
		if wait != c.wait*time.Second {
			t.Errorf("at %d s, start %d after the exit at %d s: waits %s, want %ds", c.now, c.start, c.exited, wait, c.wait)
		}
	}
}
