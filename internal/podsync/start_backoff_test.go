package podsync

import (
	"errors"
	"testing"
	"time"

	"swiftlet/internal/backoff"
	"swiftlet/internal/image"
	"swiftlet/internal/pod"
)

func TestStartBackoff(t *testing.T) {
	r := startBackoff{}
	key := containerKey{name: "c", hash: "h"}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, want := range []time.Duration{200, 400, 800, 1600, 3200, 6400, 10000, 10000} {
		if wait := r.failed(key, errors.New("no"), now); wait != want*time.Millisecond || r.remaining(key, now) != wait {
			t.Errorf("failure %d: waits %s, want %dms", i+1, wait, want)
		}
	}
	if left := r.remaining(key, now.Add(11*time.Second)); left != 0 {
		t.Errorf("after the delay: %s", left)
	}
	// The delay of an image in back-off is used, and the back-off begins again.
	held := &image.Error{Reason: image.ReasonBackOff, RetryAfter: 77 * time.Second}
	if wait := r.failed(key, held, now); wait != held.RetryAfter {
		t.Errorf("image in back-off: waits %s", wait)
	}
	if wait := r.failed(key, errors.New("no"), now); wait != startRetry.First {
		t.Errorf("next failure: waits %s", wait)
	}
	r.succeeded(key)
	if left := r.remaining(key, now); left != 0 {
		t.Errorf("after success: %s", left)
	}
}

// After a change of a Secret or ConfigMap a configuration may be complete, or an image can be
// pulled.
func TestObjectsChanged(t *testing.T) {
	for reason, want := range map[string]bool{
		"CreateContainerConfigError": true, "ErrImagePull": true, "ImagePullBackOff": true,
		"CreateContainerError": false, "ErrImageNeverPull": false, "CrashLoopBackOff": false,
	} {
		m := newMemory(backoff.Backoff{})
		key, now := containerKey{name: "c", hash: "h"}, time.Now()
		m.waitingReasons["c"] = pod.Waiting{Reason: reason}
		_ = m.startBackoff.failed(key, errors.New("no"), now)
		m.objectsChanged()
		if got := m.awaitsObjects(); got != want || (m.startBackoff.remaining(key, now) == 0) != want {
			t.Errorf("%s: %t, waits for %v", reason, got, m.startBackoff.remaining(key, now))
		}
	}
}
