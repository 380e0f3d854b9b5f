package cgroup

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// fakePressure returns a file that behaves like a pressure file in poll. Urgent data on the
// connection acts as a stall, a reset as the removal of the trigger.
func fakePressure(t *testing.T) (*os.File, *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	peer, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	f, err := conn.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	return f, peer.(*net.TCPConn)
}

// The notifier keeps running where the kernel rejects its triggers.
func TestPressureNotifierWithoutTriggers(t *testing.T) {
	for _, c := range []struct {
		name     string
		errs     []error // of each trigger
		tried    []string
		notifies bool
		warnings int
	}{
		{"first_trigger_is_accepted", []error{nil}, triggers[:1], true, 0},
		{"only_long_windows_are_accepted", []error{unix.EINVAL, nil}, triggers, true, 0},
		{"capability_is_missing", []error{unix.EPERM, unix.EPERM}, triggers, false, 1},
		{"file_system_is_read_only", []error{unix.EROFS}, triggers[:1], false, 1},
		{"access_is_denied", []error{unix.EACCES}, triggers[:1], false, 1},
		{"psi_is_disabled", []error{unix.EOPNOTSUPP}, triggers[:1], false, 0},
		{"kernel_has_no_psi", []error{unix.ENOENT}, triggers[:1], false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, peer := fakePressure(t)
			defer file.Close()
			var tried []string
			logged := make(logLines, 10)
			notifier := &pressureNotifier{events: t.TempDir() + "/none", log: slog.New(slog.NewTextHandler(logged, nil)),
				open: func(_, trigger string) (*os.File, error) {
					tried = append(tried, trigger)
					if err := c.errs[len(tried)-1]; err != nil {
						return nil, &os.PathError{Op: "open", Err: err}
					}
					return file, nil
				}}
			ctx, stop := context.WithCancel(t.Context())
			notified, done := make(chan struct{}, 1), make(chan error)
			go func() {
				done <- notifier.Run(ctx, func() {
					select {
					case notified <- struct{}{}:
					default:
					}
				})
			}()
			if c.notifies {
				stall(t, peer)
				<-notified
				if err := peer.SetLinger(0); err != nil {
					t.Fatal(err)
				}
				peer.Close() // resets the connection
				c.warnings++
			}
			for range c.warnings {
				select {
				case <-logged:
				case err := <-done:
					t.Fatalf("Run returned: %v", err)
				}
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if !slices.Equal(tried, c.tried) {
				t.Errorf("tried triggers %q, want %q", tried, c.tried)
			}
			if len(logged) > 0 {
				t.Errorf("unexpected log: %s", <-logged)
			}
		})
	}
}

// logLines receives each line of a log.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) { l <- string(line); return len(line), nil }

func stall(t *testing.T, peer *net.TCPConn) {
	t.Helper()
	raw, err := peer.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Write(func(fd uintptr) bool {
		if err := unix.Send(int(fd), []byte{1}, unix.MSG_OOB); err != nil {
			t.Error(err)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
}

// A process that reads a file larger than its memory limit again and again stalls, and the
// kernel reports it through PSI.
func TestKernelMemoryStalls(t *testing.T) {
	const pressure = "/proc/pressure/memory"
	if _, err := os.Stat(pressure); errors.Is(err, fs.ErrNotExist) {
		t.Skip("this kernel has no PSI")
	}
	tree := kernelTree(t)
	notified := runNotifier(t, &pressureNotifier{pressure: pressure, log: slog.New(slog.NewTextHandler(t.Output(), nil)), open: openTrigger})
	leaf := tree.hierarchy.Dir("memory", tree.Kubepods()) + "/pod-reader"
	if err := os.Mkdir(leaf, 0o755); err != nil {
		t.Fatal(err)
	}
	limit := map[int]string{1: "/memory.limit_in_bytes", 2: "/memory.max"}[tree.Version()]
	if err := os.WriteFile(leaf+limit, []byte("8388608"), 0); err != nil {
		t.Fatal(err)
	}
	// The process writes the file itself, so that the page cache is charged to its cgroup.
	startIn(t, leaf, `dd if=/dev/zero of="$1" bs=1M count=64 && while :; do cat "$1" > /dev/null; done`, filepath.Join(t.TempDir(), "file"))
	expectNotification(t, notified)
}
