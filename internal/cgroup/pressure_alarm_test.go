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

// stalling is a file that is like the kernel's on pressure to those who poll: urgent data is a
// stall, and a reset that the kernel gives up.
func stalling(t *testing.T) (*os.File, *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	far, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	f, err := near.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	return f, far.(*net.TCPConn)
}

// What the kernel refuses is no reason to give up on the rest.
func TestPressureAlarmGoesOnWithWhatThereIs(t *testing.T) {
	for _, c := range []struct {
		name    string
		refusal []error // of each trigger
		tried   []string
		rings   bool
		warns   int
	}{
		{"all is well", []error{nil}, triggers[:1], true, 0},
		{"only long windows are allowed", []error{unix.EINVAL, nil}, triggers, true, 0},
		{"a capability is missing", []error{unix.EPERM, unix.EPERM}, triggers, false, 1},
		{"it cannot be written to", []error{unix.EROFS}, triggers[:1], false, 1},
		{"it is out of bounds", []error{unix.EACCES}, triggers[:1], false, 1},
		{"stalls are not counted", []error{unix.EOPNOTSUPP}, triggers[:1], false, 0},
		{"there is no such file", []error{unix.ENOENT}, triggers[:1], false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, far := stalling(t)
			defer file.Close()
			var tried []string
			said := make(lines, 10)
			alarm := &pressureAlarm{events: t.TempDir() + "/none", log: slog.New(slog.NewTextHandler(said, nil)),
				open: func(_, trigger string) (*os.File, error) {
					tried = append(tried, trigger)
					if err := c.refusal[len(tried)-1]; err != nil {
						return nil, &os.PathError{Op: "open", Err: err}
					}
					return file, nil
				}}
			ctx, stop := context.WithCancel(t.Context())
			rung, done := make(chan struct{}, 1), make(chan error)
			go func() {
				done <- alarm.Run(ctx, func() {
					select {
					case rung <- struct{}{}:
					default:
					}
				})
			}()
			if c.rings {
				stall(t, far)
				<-rung
				if err := far.SetLinger(0); err != nil {
					t.Fatal(err)
				}
				far.Close() // resets the connection
				c.warns++
			}
			for range c.warns {
				select {
				case <-said:
				case err := <-done:
					t.Fatalf("it ended: %v", err)
				}
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if !slices.Equal(tried, c.tried) {
				t.Errorf("it tried %q", tried)
			}
			if len(said) > 0 {
				t.Errorf("it said: %s", <-said)
			}
		})
	}
}

// lines are what is logged.
type lines chan string

func (l lines) Write(line []byte) (int, error) { l <- string(line); return len(line), nil }

func stall(t *testing.T, far *net.TCPConn) {
	t.Helper()
	raw, err := far.SyscallConn()
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

// A process that reads the same again and again, since it may not keep it, stalls: the kernel
// tells of that by itself.
func TestKernelStalls(t *testing.T) {
	const pressure = "/proc/pressure/memory"
	if _, err := os.Stat(pressure); errors.Is(err, fs.ErrNotExist) {
		t.Skip("this kernel does not count stalls")
	}
	tree := kernelTree(t)
	rung := runAlarm(t, &pressureAlarm{pressure: pressure, log: slog.New(slog.NewTextHandler(t.Output(), nil)), open: openTrigger})
	leaf := tree.hierarchy.Dir("memory", tree.Top()) + "/pod-reader"
	if err := os.Mkdir(leaf, 0o755); err != nil {
		t.Fatal(err)
	}
	limit := map[int]string{1: "/memory.limit_in_bytes", 2: "/memory.max"}[tree.Version()]
	if err := os.WriteFile(leaf+limit, []byte("8388608"), 0); err != nil {
		t.Fatal(err)
	}
	// It writes the file itself, so that it is the one to keep it.
	startIn(t, leaf, `dd if=/dev/zero of="$1" bs=1M count=64 && while :; do cat "$1" > /dev/null; done`, filepath.Join(t.TempDir(), "file"))
	mustRing(t, rung)
}
