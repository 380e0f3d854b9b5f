package ownership

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// TestProgress has the messages of the reference kubelet, and its times.
func TestProgress(t *testing.T) {
	const slow = "Setting volume ownership for uid/volumes/kind/v is taking longer than expected, consider using OnRootMismatch - https://kubernetes.io/docs/tasks/configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods"
	const progress = "Setting volume ownership for uid/volumes/kind/v, processed 7 files."
	for name, c := range map[string]struct {
		takes time.Duration
		want  []string
	}{
		"short walk is not reported":                {29 * time.Second, nil},
		"walk is reported after half a minute":      {89 * time.Second, []string{slow}},
		"walk is reported again after every minute": {3 * time.Minute, []string{slow, progress, progress}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var messages []string
				var files atomic.Int64
				files.Store(7)
				stop := Progress{Volume: "uid/volumes/kind/v", Report: func(m string) { messages = append(messages, m) }, Clock: clock.RealClock{}}.start(&files)
				time.Sleep(c.takes)
				stop()
				time.Sleep(time.Hour) // nothing is reported after the end
				if !slices.Equal(messages, c.want) {
					t.Errorf("messages %q, want %q", messages, c.want)
				}
			})
		})
	}
}
