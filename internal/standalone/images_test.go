package standalone

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// loadWith loads an archive with a program in place of ctr.
func loadWith(ctx context.Context, t *testing.T, script string) error {
	t.Helper()
	dir := t.TempDir()
	archive := filepath.Join(dir, "images.tar")
	for file, text := range map[string]string{filepath.Join(dir, "ctr"): "#!/bin/sh\n" + script, archive: "no archive"} {
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := &Supervisor{cfg: Config{Paths: Paths{root: dir, run: dir, bundle: dir}}, deps: Deps{Clock: clock.RealClock{}, Out: os.Stderr, Log: slog.New(slog.DiscardHandler)}}
	return s.load(ctx, archive)
}

// TestLoadOfKilledProgram: a program that ends without a word leaves its exit status as the reason.
func TestLoadOfKilledProgram(t *testing.T) {
	for script, want := range map[string]string{
		`case "$*" in *import*) kill -9 $$; esac`:                                       "signal: killed",
		`case "$*" in *import*) exit 3; esac`:                                           "exit status 3",
		`case "$*" in *import*) echo warning >&2; echo ctr: no space >&2; exit 1; esac`: "no space",
	} {
		if err := loadWith(t.Context(), t, script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %q, want %q", script, err, want)
		}
	}
}

// TestLoadEndsWithCommand: what the program has left running keeps its output open, and is not waited for.
func TestLoadEndsWithCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stopped := time.AfterFunc(200*time.Millisecond, cancel)
	defer stopped.Stop()
	ended := make(chan error, 1)
	go func() { ended <- loadWith(ctx, t, `case "$*" in *import*) sleep 30; esac`) }()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("no error")
		}
	case <-time.After(20 * time.Second):
		t.Error("the command waits for a program that was killed")
	}
}
