package shutdown

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"swiftlet/test/logind"
	"swiftlet/test/poll"
)

// bus starts a real dbus-daemon for the test.
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
	poll.Until(t, "the bus", func() bool { // the socket exists before the daemon listens
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		_ = conn.Close()
		return true
	})
	return "unix:path=" + socket
}

// fixture is a Manager that records what it does.
type fixture struct {
	*Manager
	mu         sync.Mutex
	terminated []string
	events     []string
	times      []bool // per call of ReportTimes: whether the start and the end are set
	log        strings.Builder
}

// Write records the log.
func (f *fixture) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(line)
}

// inhibits reports whether the manager has the inhibitor lock. It is not enough that logind has
// sent it: logind keeps a copy until it announces the shutdown, and must not close it before
// the manager has received its own.
func (f *fixture) inhibits() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Contains(f.log.String(), "node shutdown: inhibitor lock taken")
}

func (f *fixture) Eventf(_ runtime.Object, kind, reason, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, fmt.Sprintf("%s %s %s", kind, reason, fmt.Sprintf(format, args...)))
}

func newFixture(t *testing.T, cfg Config, pods ...*v1.Pod) *fixture {
	t.Helper()
	f := &fixture{}
	if cfg.RootDir == "" {
		cfg.RootDir = t.TempDir()
	}
	cfg.LogindDir = filepath.Join(cfg.RootDir, "logind.conf.d")
	var err error
	f.Manager, err = New(cfg, Deps{
		Pods: func() []*v1.Pod { return pods },
		TerminatePod: func(ctx context.Context, p *v1.Pod, grace int64) {
			f.mu.Lock()
			f.terminated = append(f.terminated, fmt.Sprintf("%s %d", p.Name, grace))
			f.mu.Unlock()
			if strings.HasPrefix(p.Name, "slow") {
				<-ctx.Done()
			}
		},
		ShuttingDownChanged: func() {}, Events: f, Node: &v1.ObjectReference{Kind: "Node"},
		ReportTimes: func(began, ended time.Time) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.times = append(f.times, !began.IsZero(), !ended.IsZero())
		},
		Clock: clock.RealClock{}, Log: slog.New(slog.NewTextHandler(f, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// run runs the manager until the test ends.
func (f *fixture) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func newPod(name string, priority int32, grace int64) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{Priority: &priority, TerminationGracePeriodSeconds: &grace}}
}

// A shutdown terminates pods and releases the inhibitor lock; its cancellation takes the lock
// again.
func TestShutdownAndCancellation(t *testing.T) {
	address := bus(t)
	login, err := logind.Start(address, 1e6, 60e6)
	if err != nil {
		t.Fatal(err)
	}
	defer login.Close()
	f := newFixture(t, Config{Bus: address, Groups: groupsByCriticality(30*time.Second, 10*time.Second)},
		newPod("critical", systemCritical, 60), newPod("usual", 0, 7), newPod("lasting", 5, 600))
	f.run(t)
	poll.Until(t, "the inhibitor lock", f.inhibits)
	dropIn, err := os.ReadFile(filepath.Join(f.cfg.LogindDir, "99-kubelet.conf"))
	if err != nil || !strings.Contains(string(dropIn), "\n[Login]\nInhibitDelayMaxSec=30\n") {
		t.Errorf("drop-in of logind is %q, %v", dropIn, err)
	}
	if f.ShuttingDown() || f.ReadyCheck() != nil {
		t.Error("shutting down before the signal")
	}
	if err := login.Announce(true); err != nil {
		t.Fatal(err)
	}
	select {
	case <-login.Released():
	case <-time.After(30 * time.Second):
		t.Fatal("the inhibitor lock was not released")
	}
	f.mu.Lock()
	slices.Sort(f.terminated[:2])
	if diff := cmp.Diff([]string{"lasting 20", "usual 7", "critical 10"}, f.terminated); diff != "" {
		t.Errorf("terminated: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]bool{false, false, true, false, true, true}, f.times); diff != "" {
		t.Errorf("reported times: -want +got\n%s", diff)
	}
	f.mu.Unlock()
	if !f.ShuttingDown() || f.ReadyCheck() == nil || f.ReadyCheck().Error() != "node is shutting down" {
		t.Errorf("ShuttingDown %t, ReadyCheck %v", f.ShuttingDown(), f.ReadyCheck())
	}
	if s := f.lastShutdown(); s.Began.IsZero() || s.Ended.Before(s.Began) {
		t.Errorf("state file: %+v", s)
	}

	if err := login.Announce(false); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the inhibitor lock after the cancellation", func() bool { return login.Held() == 1 })
	if f.ShuttingDown() {
		t.Error("still shutting down after the cancellation")
	}
	want := []string{"Normal Shutdown Shutdown manager detected shutdown event", "Normal Shutdown Shutdown manager detected shutdown cancellation"}
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff(want, f.events); diff != "" {
		t.Errorf("events: -want +got\n%s", diff)
	}
}

// The manager retries until logind is there, and does not wait for a group longer than its
// grace period.
func TestLateLogindAndSlowPods(t *testing.T) {
	address := bus(t)
	f := newFixture(t, Config{Bus: address, Groups: []Group{{100, time.Second}, {0, time.Second}}},
		newPod("slow", 0, 30), newPod("last", 100, 0))
	f.run(t)
	login, err := logind.Start(address, 60e6, 60e6)
	if err != nil {
		t.Fatal(err)
	}
	defer login.Close()
	poll.Until(t, "the inhibitor lock", f.inhibits)
	if err := login.Announce(true); err != nil {
		t.Fatal(err)
	}
	<-login.Released()
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff([]string{"slow 1", "last 0"}, f.terminated); diff != "" {
		t.Errorf("terminated: -want +got\n%s", diff)
	}
}

// Every user of the bus may send signals, also to the manager alone. Only those of logind count.
func TestSignalOfAnotherProgram(t *testing.T) {
	address := bus(t)
	login, err := logind.Start(address, 60e6, 60e6)
	if err != nil {
		t.Fatal(err)
	}
	defer login.Close()
	f := newFixture(t, Config{Bus: address, Groups: []Group{{0, time.Second}}}, newPod("usual", 0, 1))
	f.run(t)
	poll.Until(t, "the inhibitor lock", f.inhibits)
	stranger, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	var names []string
	if err := stranger.BusObject().Call("org.freedesktop.DBus.ListNames", 0).Store(&names); err != nil {
		t.Fatal(err)
	}
	for _, to := range append(names, "") { // to each connection, and to all that subscribed
		announcement := &dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldInterface: dbus.MakeVariant(login1Manager), dbus.FieldMember: dbus.MakeVariant(prepareForShutdown),
			dbus.FieldPath:      dbus.MakeVariant(dbus.ObjectPath("/org/freedesktop/login1")),
			dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(true)),
		}, Body: []any{true}}
		if to != "" {
			announcement.Headers[dbus.FieldDestination] = dbus.MakeVariant(to)
		}
		stranger.Send(announcement, nil)
	}
	if err := stranger.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err; err != nil { // the bus has forwarded them
		t.Fatal(err)
	}
	if err := login.Announce(false); err != nil { // the manager has read the others before it takes the lock again
		t.Fatal(err)
	}
	poll.Until(t, "the inhibitor lock after the cancellation", func() bool { return login.Held() == 1 })
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff([]string{"Normal Shutdown Shutdown manager detected shutdown cancellation"}, f.events); diff != "" || len(f.terminated) > 0 {
		t.Errorf("terminated %q, events: -want +got\n%s", f.terminated, diff)
	}
}

// A delay that is longer than any duration is not shortened.
func TestInfiniteInhibitDelay(t *testing.T) {
	address := bus(t)
	login, err := logind.Start(address, math.MaxUint64, 60e6)
	if err != nil {
		t.Fatal(err)
	}
	defer login.Close()
	f := newFixture(t, Config{Bus: address, Groups: []Group{{0, time.Second}}})
	f.run(t)
	poll.Until(t, "the inhibitor lock", f.inhibits)
	if _, err := os.Stat(filepath.Join(f.cfg.LogindDir, dropIn)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("drop-in of logind: %v, want none", err)
	}
}

func TestGroupPods(t *testing.T) {
	groups := sortGroups([]Group{{1000, 3}, {10, 1}, {100, 2}})
	var got []string
	pods := []*v1.Pod{newPod("below", -5, 0), newPod("low", 10, 0), newPod("between", 99, 0), newPod("mid", 100, 0), newPod("above", 5000, 0), {ObjectMeta: metav1.ObjectMeta{Name: "none"}}}
	for i, in := range groupPods(groups, pods) {
		for _, p := range in {
			got = append(got, fmt.Sprintf("%d %s", groups[i].Priority, p.Name))
		}
	}
	want := []string{"10 below", "10 low", "10 between", "10 none", "100 mid", "1000 above"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for _, groups := range [][]Group{groupsByCriticality(0, 0), groupsByCriticality(time.Second, time.Minute)} {
		if groups != nil {
			t.Errorf("got %v, want no groups", groups)
		}
	}
}
