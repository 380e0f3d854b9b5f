package podsync

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// hungNode has orphans whose removal hangs, some of them without regard to the context.
type hungNode struct {
	release chan struct{}
	mu      sync.Mutex
	removed []string
}

func (n *hungNode) remove(ctx context.Context, what string, uid types.UID) error {
	switch {
	case strings.HasPrefix(string(uid), "hung"): // in the kernel
		<-n.release
	case strings.HasPrefix(string(uid), "unkillable"): // waits for processes to exit
		<-ctx.Done()
		return ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.removed = append(n.removed, what+" "+string(uid))
	return nil
}

func (n *hungNode) PodDirs() ([]types.UID, error) { return []types.UID{"hung-dir", "dir"}, nil }
func (n *hungNode) UnstageOrphans() error         { return nil }
func (n *hungNode) Unmount(ctx context.Context, uid types.UID) error {
	return n.remove(ctx, "unmount", uid)
}
func (n *hungNode) RemovePodDir(types.UID) error { return nil }
func (n *hungNode) Pods() ([]types.UID, error) {
	return []types.UID{"hung-cgroup", "unkillable", "cgroup"}, nil
}
func (n *hungNode) RemovePod(ctx context.Context, uid types.UID) error {
	return n.remove(ctx, "cgroup", uid)
}
func (n *hungNode) PodLogs() ([]pod.Ref, error) {
	return []pod.Ref{{UID: "hung-logs"}, {UID: "logs"}}, nil
}
func (n *hungNode) RemoveLogs(ref pod.Ref) error {
	return n.remove(context.Background(), "logs", ref.UID)
}

// An orphan that cannot be removed, such as one with a process in an uninterruptible system call, does not
// stop housekeeping: the others are removed, and the next runs do not wait for it again.
func TestHungOrphansDoNotStopHousekeeping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hungNode{release: make(chan struct{})}
		var log bytes.Buffer
		surplus := 0
		no := func(types.UID) bool { return false }
		k, err := NewHousekeeper(HousekeeperDeps{
			Known: no, InRuntime: no, Directories: n, Cgroups: n, Logs: n, Log: slog.New(slog.NewTextHandler(&log, nil)),
			RemoveSurplus: func(context.Context) error { surplus++; return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		round := func() time.Duration {
			began := time.Now()
			done := make(chan struct{})
			go func() { k.round(ctx); close(done) }()
			select {
			case <-done:
			case <-time.After(8 * time.Minute):
				close(n.release)
				t.Fatal("housekeeping hangs")
			}
			return time.Since(began)
		}
		if took := round(); took > 4*time.Minute {
			t.Errorf("the first run took %v", took)
		}
		for _, want := range []string{"unmount dir", "cgroup cgroup", "logs logs"} {
			if !strings.Contains(strings.Join(n.removed, ","), want) {
				t.Errorf("removed %v, want %s", n.removed, want)
			}
		}
		for range 5 {
			if took := round(); took > 10*time.Second {
				t.Errorf("a later run took %v: it waits again for what hangs", took)
			}
		}
		if surplus != 6 {
			t.Errorf("the last step ran %d times in 6 runs", surplus)
		}
		if n := strings.Count(log.String(), "hung-cgroup"); n == 0 || n > 4 {
			t.Errorf("the log names the hung cgroup %d times:\n%s", n, log.String())
		}
		if running := k.calls.Running(); len(running) != 3 {
			t.Errorf("calls that hang: %q, want one for each hung orphan", running)
		}
		close(n.release)
	})
}
