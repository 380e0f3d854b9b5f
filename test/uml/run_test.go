package uml

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func shell(t *testing.T, script string) Machine {
	t.Helper()
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("needs root: boots a machine")
	}
	return Machine{
		Command: []string{"sh", "-c", script}, Dir: t.TempDir(), Env: append(os.Environ(), "WORD=it's"),
		MemoryMiB: 256, SwapMiB: 64,
	}
}

func TestRun(t *testing.T) {
	hostFile := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(hostFile, []byte("ours\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := shell(t, `echo "$WORD"; stat -fc %T /sys/fs/cgroup; awk '/SwapTotal/ {print ($2 > 60000)}' /proc/meminfo
		cat `+hostFile+`; echo theirs > `+hostFile+` && exit 3`)
	var out bytes.Buffer
	m.Out = &out
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code, err := Run(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	if want := "it's\ncgroup2fs\n1\nours\n"; code != 3 || out.String() != want {
		t.Errorf("code %d and %q, want 3 and %q", code, out.String(), want)
	}
	if text, _ := os.ReadFile(hostFile); string(text) != "ours\n" {
		t.Errorf("the machine wrote %q to the host's disk", text)
	}
}

func TestHungMachineIsKilled(t *testing.T) {
	m := shell(t, "echo last words > /dev/console; echo up; sleep 1000 & sleep 1000")
	late, cancelLate := context.WithTimeout(t.Context(), time.Minute)
	defer cancelLate()
	ctx, cancel := context.WithCancelCause(late)
	defer cancel(nil)
	errStop := errors.New("stop")
	m.Out = writerFunc(func([]byte) { cancel(errStop) }) // it has booted and hangs
	_, err := Run(ctx, m)
	if !errors.Is(err, errStop) || !strings.Contains(err.Error(), "last words") {
		t.Errorf("got %v", err)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }
