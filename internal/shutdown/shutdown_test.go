package shutdown

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"swiftlet/test/logind"
	"swiftlet/test/poll"
)

// bus is a real dbus-daemon of the test's own.
func bus(t *testing.T) (address string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "bus")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, config := filepath.Join(dir, "bus"), filepath.Join(dir, "bus.conf")
	if err := os.WriteFile(config, []byte(logind.BusConfig(socket)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("dbus-daemon", "--nofork", "--config-file="+config)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	poll.Until(t, "the bus", func() bool { // the socket is there before somebody listens
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		_ = conn.Close()
		return true
	})
	return "unix:path=" + socket
}

// world is a node that is told to go down.
type world struct {
	*Manager
	mu     sync.Mutex
	ended  []string
	events []string
	times  []bool // whether the shutdown had begun and ended, as measured
	said   strings.Builder
}

// Write takes what the manager logs.
func (w *world) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.Write(line)
}

// holds is that the manager has what holds a shutdown up. That logind has handed it out is
// too early: logind keeps a copy until it announces the shutdown, and must not drop it while
// the manager's is still to be sent.
func (w *world) holds() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.said.String(), "shutdowns of the machine wait for pods")
}

func (w *world) Eventf(_ runtime.Object, kind, reason, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf("%s %s %s", kind, reason, fmt.Sprintf(format, args...)))
}

func newWorld(t *testing.T, cfg Config, pods ...*v1.Pod) *world {
	t.Helper()
	w := &world{}
	if cfg.RootDir == "" {
		cfg.RootDir = t.TempDir()
	}
	cfg.LogindDir = filepath.Join(cfg.RootDir, "logind.conf.d")
	var err error
	w.Manager, err = New(cfg, Deps{
		Pods: func() []*v1.Pod { return pods },
		End: func(ctx context.Context, p *v1.Pod, grace int64) {
			w.mu.Lock()
			w.ended = append(w.ended, fmt.Sprintf("%s %d", p.Name, grace))
			w.mu.Unlock()
			if strings.HasPrefix(p.Name, "slow") {
				<-ctx.Done()
			}
		},
		Changed: func() {}, Events: w, Node: &v1.ObjectReference{Kind: "Node"},
		Measured: func(began, ended time.Time) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.times = append(w.times, !began.IsZero(), !ended.IsZero())
		},
		Clock: clock.RealClock{}, Log: slog.New(slog.NewTextHandler(w, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// run lets the manager run until the test ends.
func (w *world) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func aPod(name string, priority int32, grace int64) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{Priority: &priority, TerminationGracePeriodSeconds: &grace}}
}

// TestShutdown goes through a shutdown, its cancellation, and another one, on a real bus.
func TestShutdown(t *testing.T) {
	address := bus(t)
	login, err := logind.Start(address, 1e6, 60e6)
	if err != nil {
		t.Fatal(err)
	}
	defer login.Close()
	w := newWorld(t, Config{Bus: address, Groups: TwoGroups(30*time.Second, 10*time.Second)},
		aPod("critical", systemCritical, 60), aPod("usual", 0, 7), aPod("lasting", 5, 600))
	w.run(t)
	poll.Until(t, "the shutdown to be held up", w.holds)
	drop, err := os.ReadFile(filepath.Join(w.cfg.LogindDir, "99-kubelet.conf"))
	if err != nil || !strings.Contains(string(drop), "\n[Login]\nInhibitDelayMaxSec=30\n") {
		t.Errorf("logind is told %q, %v", drop, err)
	}
	if w.Down() || w.Err() != nil {
		t.Error("down before anybody said so")
	}
	if err := login.Announce(true); err != nil {
		t.Fatal(err)
	}
	select {
	case <-login.Released():
	case <-time.After(30 * time.Second):
		t.Fatal("the shutdown is never let go")
	}
	w.mu.Lock()
	slices.Sort(w.ended[:2])
	if diff := cmp.Diff([]string{"lasting 20", "usual 7", "critical 10"}, w.ended); diff != "" {
		t.Errorf("ended: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]bool{false, false, true, false, true, true}, w.times); diff != "" {
		t.Errorf("measured: -want +got\n%s", diff)
	}
	w.mu.Unlock()
	if !w.Down() || w.Err() == nil || w.Err().Error() != "node is shutting down" {
		t.Errorf("down %t, %v", w.Down(), w.Err())
	}
	if s := w.load(); s.Began.IsZero() || s.Ended.Before(s.Began) {
		t.Errorf("kept of it: %+v", s)
	}

	if err := login.Announce(false); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the next shutdown to be held up", func() bool { return login.Held() == 1 })
	if w.Down() {
		t.Error("still down after the cancellation")
	}
	want := []string{"Normal NodeShutdown Shutdown manager detected shutdown event", "Normal NodeShutdown Shutdown manager detected shutdown cancellation"}
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff(want, w.events); diff != "" {
		t.Errorf("events: -want +got\n%s", diff)
	}
}

// A group that takes too long is left behind, and a bus that comes late is found.
func TestLateBusAndSlowPods(t *testing.T) {
	address := bus(t)
	w := newWorld(t, Config{Bus: address, Groups: []Group{{100, time.Second}, {0, time.Second}}},
		aPod("slow", 0, 30), aPod("last", 100, 0))
	w.run(t)
	login, err := logind.Start(address, 60e6, 60e6)
	if err != nil {
		t.Fatal(err)
	}
	defer login.Close()
	poll.Until(t, "the shutdown to be held up", w.holds)
	if err := login.Announce(true); err != nil {
		t.Fatal(err)
	}
	<-login.Released()
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff([]string{"slow 1", "last 0"}, w.ended); diff != "" {
		t.Errorf("ended: -want +got\n%s", diff)
	}
}

func TestGroups(t *testing.T) {
	groups := inOrder([]Group{{1000, 3}, {10, 1}, {100, 2}})
	var got []string
	pods := []*v1.Pod{aPod("below", -5, 0), aPod("low", 10, 0), aPod("between", 99, 0), aPod("mid", 100, 0), aPod("above", 5000, 0), {ObjectMeta: metav1.ObjectMeta{Name: "none"}}}
	for i, in := range assign(groups, pods) {
		for _, p := range in {
			got = append(got, fmt.Sprintf("%d %s", groups[i].Priority, p.Name))
		}
	}
	want := []string{"10 below", "10 low", "10 between", "10 none", "100 mid", "1000 above"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for _, none := range [][]Group{TwoGroups(0, 0), TwoGroups(time.Second, time.Minute)} {
		if none != nil {
			t.Errorf("%v", none)
		}
	}
}
