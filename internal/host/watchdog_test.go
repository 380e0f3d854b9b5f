package host

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	testclock "k8s.io/utils/clock/testing"
)

func watchdogDeps(healthy func() error) (WatchdogDeps, *testclock.FakeClock) {
	clock := testclock.NewFakeClock(time.Now())
	return WatchdogDeps{Healthy: healthy, Clock: clock, Log: slog.New(slog.DiscardHandler)}, clock
}

func TestNewWatchdog(t *testing.T) {
	own := strconv.Itoa(os.Getpid())
	for name, tt := range map[string]struct {
		micros, pid string
		want        time.Duration // 0: no watchdog
		err         string
	}{
		"not requested":                {},
		"requested":                    {micros: "30000000", want: 15 * time.Second},
		"requested of this process":    {micros: "30000000", pid: own, want: 15 * time.Second},
		"requested of another process": {micros: "30000000", pid: own + "0"},
		"timeout is not a number":      {micros: "soon", err: "WATCHDOG_USEC"},
		"timeout is zero":              {micros: "0", err: "WATCHDOG_USEC"},
		"timeout is negative":          {micros: "-1", err: "WATCHDOG_USEC"},
		"timeout overflows":            {micros: "9223372036854775807", err: "timeout too small"},
		"timeout is too short":         {micros: "1000000", err: "timeout too small: 1s"},
		"process id is not a number":   {micros: "30000000", pid: "me", err: "WATCHDOG_PID"},
		"timeout exceeds the integer":  {micros: "9223372036854775808", err: "WATCHDOG_USEC"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("WATCHDOG_USEC", tt.micros)
			t.Setenv("WATCHDOG_PID", tt.pid)
			deps, _ := watchdogDeps(func() error { return nil })
			w, err := NewWatchdog(deps)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("got error %v, want %q", err, tt.err)
			}
			var got time.Duration
			if w != nil {
				got = w.interval
			}
			if got != tt.want {
				t.Errorf("interval %s, want %s", got, tt.want)
			}
		})
	}
}

func TestWatchdogNotifiesWhileHealthy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "30000000")
	health := make(chan error) // results of the health check
	deps, clock := watchdogDeps(func() error { return <-health })
	w, err := NewWatchdog(deps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	received := func() string {
		t.Helper()
		if err := manager.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		state := make([]byte, 64)
		n, err := manager.Read(state)
		if err != nil {
			t.Fatal(err)
		}
		return string(state[:n])
	}
	health <- nil
	if got := received(); got != daemon.SdNotifyWatchdog {
		t.Errorf("first notification %q", got)
	}
	clock.Step(15 * time.Second)
	health <- errors.New("sync loop is stuck")
	clock.Step(15 * time.Second)
	health <- nil
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := NotifyReady(); err != nil {
		t.Fatal(err)
	}
	notified := 0
	for state := received(); state != daemon.SdNotifyReady; state = received() {
		notified++
	}
	if notified != 1 {
		t.Errorf("notified %d times while unhealthy once and healthy once, want 1", notified)
	}
}
