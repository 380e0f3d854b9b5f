package dns

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// allocated is how many bytes f allocates, freed or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// sparseFile creates a sparse file of size bytes. It skips the test if the file system does not
// support that size.
func sparseFile(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); errors.Is(err, syscall.EFBIG) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("the file system has no files of %d bytes", size)
	} else if err != nil {
		t.Fatal(err)
	}
}

// A container can write to its hosts file and make it arbitrarily large.
func TestEnsureHostsReadsNoMoreThanItWrites(t *testing.T) {
	shm, err := os.MkdirTemp("/dev/shm", "hosts") // tmpfs supports files of any size
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(shm) })
	for name, c := range map[string]struct {
		dir  string
		size int64
	}{
		"256 MiB": {t.TempDir(), 256 << 20}, // small enough for memory if the test fails
		"4 EiB":   {shm, 1 << 62},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newResolver(t, Config{})
			path := filepath.Join(c.dir, "etc-hosts")
			sparseFile(t, path, c.size)
			before, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := allocated(func() { err = r.EnsureHosts(path, newPod(func(*v1.PodSpec) {}), []string{"10.0.0.1"}) }); got > 1<<20 {
				t.Errorf("allocated %d bytes", got)
			}
			if err != nil {
				t.Fatal(err)
			}
			after, err := os.Stat(path)
			if err != nil || !os.SameFile(before, after) {
				t.Errorf("rewritten in place: %v (%v), want so: containers hold a mount of it", os.SameFile(before, after), err)
			}
			if after.Size() > 1<<20 {
				t.Fatalf("the file still has %d bytes", after.Size())
			}
			if content, err := os.ReadFile(path); err != nil || string(content) != recordedHead+"10.0.0.1\tweb\n" {
				t.Errorf("content %q (%v)", content, err)
			}
		})
	}
}

func TestEnsureHostsRewritesContentOfTheSameSize(t *testing.T) {
	r, _ := newResolver(t, Config{})
	path := filepath.Join(t.TempDir(), "etc-hosts")
	want := recordedHead + "10.0.0.1\tweb\n"
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), len(want)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.EnsureHosts(path, newPod(func(*v1.PodSpec) {}), []string{"10.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != want {
		t.Errorf("content %q (%v)", content, err)
	}
}

// A symbolic link or FIFO in place of the file is replaced, neither followed nor opened.
func TestEnsureHostsReplacesNonRegularFiles(t *testing.T) {
	for name, place := range map[string]func(path, outside string) error{
		"fifo":          func(path, _ string) error { return syscall.Mkfifo(path, 0o644) },
		"symlink":       func(path, outside string) error { return os.Symlink(outside, path) },
		"dangling link": func(path, outside string) error { return os.Symlink(outside+"-missing", path) },
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newResolver(t, Config{})
			dir := t.TempDir()
			path, outside := filepath.Join(dir, "etc-hosts"), filepath.Join(dir, "outside")
			if err := os.WriteFile(outside, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := place(path, outside); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- r.EnsureHosts(path, newPod(func(*v1.PodSpec) {}), nil) }()
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("blocked on a FIFO")
			}
			if info, err := os.Lstat(path); err != nil || info.Mode() != 0o644 {
				t.Errorf("mode %v (%v), want a regular file that all can read", info.Mode(), err)
			}
			info, err := os.Stat(outside)
			content, _ := os.ReadFile(outside)
			if err != nil || info.Mode().Perm() != 0o600 || string(content) != "precious" {
				t.Errorf("the file outside has mode %v and holds %q (%v)", info.Mode(), content, err)
			}
		})
	}
}

func TestNodeHostsFileIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	sparseFile(t, file, 256<<20)
	r, _ := newResolver(t, Config{HostsFile: file})
	var err error
	got := allocated(func() { _, err = r.Hosts(newPod(func(s *v1.PodSpec) { s.HostNetwork = true }), nil) })
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want an error that names %s", err, file)
	}
	if got > 1<<20 {
		t.Errorf("allocated %d bytes", got)
	}
}
