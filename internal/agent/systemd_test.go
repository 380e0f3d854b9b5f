package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

func TestWatchdogPeriod(t *testing.T) {
	for name, c := range map[string]struct {
		micros, pid string
		want        time.Duration
		err         string
	}{
		"not asked for":           {"", "", 0, ""},
		"asked for":               {"30000000", "", 30 * time.Second, ""},
		"asked of this process":   {"30000000", "7", 30 * time.Second, ""},
		"asked of another":        {"30000000", "8", 0, ""},
		"no number":               {"soon", "", 0, `WATCHDOG_USEC is "soon"`},
		"none":                    {"0", "", 0, `WATCHDOG_USEC is "0"`},
		"less than none":          {"-1", "", 0, `WATCHDOG_USEC is "-1"`},
		"more than time can hold": {"9223372036854775807", "", 0, "is not a time"},
		"too short":               {"1000000", "", 0, "timeout too small: 1s"},
		"no process":              {"30000000", "me", 0, `WATCHDOG_PID is "me"`},
	} {
		env := map[string]string{"WATCHDOG_USEC": c.micros, "WATCHDOG_PID": c.pid}
		got, err := watchdogPeriod(func(name string) string { return env[name] }, 7)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %s, %v, want %s, %q", name, got, err, c.want, c.err)
		}
	}
}

func TestWatchdog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	health := make(chan error) // what the loop says when it is asked
	clock := testclock.NewFakeClock(time.Now())
	w := &watchdog{every: 15 * time.Second, tell: tellSystemd, clock: clock, log: slog.New(slog.DiscardHandler),
		healthy: func() error { return <-health }}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.run(ctx) }()
	heard := func() string {
		t.Helper()
		if err := manager.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		word := make([]byte, 64)
		n, err := manager.Read(word)
		if err != nil {
			t.Fatal(err)
		}
		return string(word[:n])
	}
	health <- nil
	if got := heard(); got != "WATCHDOG=1" {
		t.Errorf("first sign %q", got)
	}
	clock.Step(15 * time.Second)
	health <- errors.New("stuck")
	clock.Step(15 * time.Second)
	health <- nil
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := tellSystemd("END=1"); err != nil {
		t.Fatal(err)
	}
	signs := 0
	for word := heard(); word != "END=1"; word = heard() {
		signs++
	}
	if signs != 1 {
		t.Errorf("%d signs while ill once and well once, want 1", signs)
	}
}
