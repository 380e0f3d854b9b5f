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

// kernel is a log: each read gives one thing, and then waits until it is closed.
type kernel struct {
	things []any // a record's text, or an error
	once   sync.Once
	ended  chan struct{}
}

func newKernel(things ...any) *kernel { return &kernel{things: things, ended: make(chan struct{})} }

func (k *kernel) Read(p []byte) (int, error) {
	if len(k.things) == 0 {
		<-k.ended
		return 0, os.ErrClosed
	}
	next := k.things[0]
	k.things = k.things[1:]
	if err, ok := next.(error); ok {
		return 0, err
	}
	return copy(p, next.(string)), nil
}

func (k *kernel) Close() error { k.once.Do(func() { close(k.ended) }); return nil }

func oomRecord(sequence, pid int) string {
	return fmt.Sprintf("3,%d,77,-;Out of memory: Killed process %d (hog)%s\n", sequence, pid, details)
}

// events takes what is told.
type events chan string

func (e events) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	e <- fmt.Sprintf("%s %s %s %s", object.(*v1.ObjectReference).Name, kind, reason, fmt.Sprintf(format, args...))
}

func newWatcher(t *testing.T, dir, boot string, log io.ReadCloser, told events) *Watcher {
	t.Helper()
	w, err := New(Config{RootDir: dir, BootID: boot},
		Deps{Kernel: log, Events: told, Node: &v1.ObjectReference{Name: "node"}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// watch runs a watcher until it has told so much, and no more is in the log.
func watch(t *testing.T, dir, boot string, log *kernel, want ...string) {
	t.Helper()
	told := make(events, 100)
	w := newWatcher(t, dir, boot, log, told)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	var got []string
	for len(got) < len(want) {
		select {
		case e := <-told:
			got = append(got, e)
		case <-ctx.Done():
			t.Fatalf("told %q, want %q", got, want)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	close(told)
	for e := range told {
		got = append(got, e)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func event(pid int) string {
	return fmt.Sprintf("node Warning SystemOOM System OOM encountered, victim process: hog, pid: %d", pid)
}

func TestSystemOOMsAreTold(t *testing.T) {
	watch(t, t.TempDir(), "boot", newKernel(
		"junk", oomRecord(1, 5),
		"3,2,77,-;Memory cgroup out of memory: Killed process 6 (hog)"+details+"\n",
		unix.EPIPE, // records were lost
		oomRecord(9, 7),
	), event(5), event(7))
}

// A new agent finds the whole log since the machine's start, and tells what the one before
// it did not.
func TestEachOOMIsToldOnce(t *testing.T) {
	dir := t.TempDir()
	watch(t, dir, "boot", newKernel(oomRecord(1, 5), oomRecord(4, 6)), event(5), event(6))
	watch(t, dir, "boot", newKernel(oomRecord(1, 5), oomRecord(4, 6), oomRecord(8, 7)), event(7))
	watch(t, dir, "another boot", newKernel(oomRecord(2, 8)), event(8))
	if err := os.WriteFile(filepath.Join(dir, stateFile), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	watch(t, dir, "another boot", newKernel(oomRecord(2, 8)), event(8)) // rather twice than never
}

// Pods run all the same.
func TestUnreadableLogEndsNothing(t *testing.T) {
	for _, trouble := range []error{io.EOF, errors.New("broken")} {
		told := make(events, 100)
		log := newKernel(oomRecord(1, 5), trouble, oomRecord(2, 6))
		if err := newWatcher(t, t.TempDir(), "boot", log, told).Run(t.Context()); err != nil {
			t.Errorf("%v: %v", trouble, err)
		}
		if got := len(told); got != 1 {
			t.Errorf("%v: %d are told", trouble, got)
		}
		select {
		case <-log.ended:
		default:
			t.Errorf("%v: the log is left open", trouble)
		}
	}
}
