package oom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// fakeKernelLog returns one result per read, and then blocks until it is closed.
type fakeKernelLog struct {
	results []any // a record's text, or an error
	once    sync.Once
	ended   chan struct{}
}

func newKernelLog(results ...any) *fakeKernelLog {
	return &fakeKernelLog{results: results, ended: make(chan struct{})}
}

func (k *fakeKernelLog) Read(p []byte) (int, error) {
	if len(k.results) == 0 {
		<-k.ended
		return 0, os.ErrClosed
	}
	next := k.results[0]
	k.results = k.results[1:]
	if err, ok := next.(error); ok {
		return 0, err
	}
	return copy(p, next.(string)), nil
}

func (k *fakeKernelLog) Close() error { k.once.Do(func() { close(k.ended) }); return nil }

func oomRecord(sequence, pid int) string {
	return fmt.Sprintf("3,%d,77,-;Out of memory: Killed process %d (hog)%s\n", sequence, pid, details)
}

// events receives the recorded events.
type events chan string

func (e events) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	e <- fmt.Sprintf("%s %s %s %s", object.(*v1.ObjectReference).Name, kind, reason, fmt.Sprintf(format, args...))
}

func newWatcher(t *testing.T, dir, boot string, log io.ReadCloser, reported events) *Watcher {
	t.Helper()
	w, err := New(Config{RootDir: dir, BootID: boot},
		Deps{KernelLog: log, Events: reported, Node: &v1.ObjectReference{Name: "node"}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// watch runs a Watcher until it has recorded the wanted events and the log is at its end.
func watch(t *testing.T, dir, boot string, log *fakeKernelLog, want ...string) {
	t.Helper()
	reported := make(events, 100)
	w := newWatcher(t, dir, boot, log, reported)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	var got []string
	for len(got) < len(want) {
		select {
		case e := <-reported:
			got = append(got, e)
		case <-ctx.Done():
			t.Fatalf("recorded %q, want %q", got, want)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	close(reported)
	for e := range reported {
		got = append(got, e)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func event(pid int) string {
	return fmt.Sprintf("node Warning SystemOOM System OOM encountered, victim process: hog, pid: %d", pid)
}

func TestSystemOOMsAreReported(t *testing.T) {
	watch(t, t.TempDir(), "boot", newKernelLog(
		"junk", oomRecord(1, 5),
		"3,2,77,-;Memory cgroup out of memory: Killed process 6 (hog)"+details+"\n",
		unix.EPIPE, // records were lost
		oomRecord(9, 7),
	), event(5), event(7))
}

// A restarted kubelet reads the whole log since boot, and reports what the previous one did not.
func TestEachOOMIsReportedOnce(t *testing.T) {
	dir := t.TempDir()
	watch(t, dir, "boot", newKernelLog(oomRecord(1, 5), oomRecord(4, 6)), event(5), event(6))
	watch(t, dir, "boot", newKernelLog(oomRecord(1, 5), oomRecord(4, 6), oomRecord(8, 7)), event(7))
	watch(t, dir, "another boot", newKernelLog(oomRecord(2, 8)), event(8))
	if err := os.WriteFile(filepath.Join(dir, stateFile), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	watch(t, dir, "another boot", newKernelLog(oomRecord(2, 8)), event(8)) // better twice than never
}

// Run returns no error: pods run without the Watcher.
func TestUnreadableLogIsNotFatal(t *testing.T) {
	for _, readErr := range []error{io.EOF, errors.New("broken")} {
		reported := make(events, 100)
		log := newKernelLog(oomRecord(1, 5), readErr, oomRecord(2, 6))
		if err := newWatcher(t, t.TempDir(), "boot", log, reported).Run(t.Context()); err != nil {
			t.Errorf("%v: %v", readErr, err)
		}
		if got := len(reported); got != 1 {
			t.Errorf("%v: %d events, want 1", readErr, got)
		}
		select {
		case <-log.ended:
		default:
			t.Errorf("%v: the log is not closed", readErr)
		}
	}
}
