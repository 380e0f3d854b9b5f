package podsync

import (
	"testing"
	"time"
)

func TestCrashBackoff(t *testing.T) {
	b := newCrashBackoff(5 * time.Minute)
	key := crashKey{pod: "p", container: "c", hash: "h"}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// Each run lasts a second; the next start follows as soon as it may.
	for i, want := range []time.Duration{0, 10, 20, 40, 80, 160, 300, 300} {
		now = now.Add(time.Second)
		exited := now
		wait, _ := b.remaining(key, exited, now)
		if wait != want*time.Second {
			t.Fatalf("crash %d: waits %s, want %ds", i+1, wait, want)
		}
		now = now.Add(wait)
		if wait > 0 {
			if again, _ := b.remaining(key, exited, now); again != 0 {
				t.Fatalf("crash %d: still %s after the wait", i+1, again)
			}
		}
		if again, _ := b.remaining(key, exited, now); again != 0 {
			t.Fatalf("crash %d: a start that failed waits %s", i+1, again)
		}
	}
	// Ten minutes of running well are forgiven.
	now = now.Add(10*time.Minute + 2*time.Second)
	if wait, _ := b.remaining(key, now, now); wait != 0 {
		t.Errorf("after a long run: waits %s", wait)
	}
	// A changed container starts with a clean slate.
	other := crashKey{pod: "p", container: "c", hash: "i"}
	if wait, _ := b.remaining(other, now, now); wait != 0 {
		t.Errorf("changed container: waits %s", wait)
	}
	b.forget("p")
	if len(b.entries) != 0 {
		t.Errorf("forget left %d entries", len(b.entries))
	}
}
