package boundedio

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, size := range map[string]int{"empty": 0, "fits": 100, "large": 101} {
		if err := os.WriteFile(path(name), []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("fits", path("link")), os.Symlink("/dev/zero", path("zero")), syscall.Mkfifo(path("fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"empty": 0, "fits": 100, "link": 100} {
		if got, err := ReadFile(path(name), 100); err != nil || len(got) != size {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	var large *TooLargeError
	if _, err := ReadFile(path("large"), 100); !errors.As(err, &large) || err.Error() != "read "+path("large")+": larger than 100 bytes" {
		t.Errorf("large: %v", err)
	}
	for name, want := range map[string]error{"fifo": ErrNotRegular, "zero": ErrNotRegular, ".": ErrNotRegular, "none": fs.ErrNotExist} {
		if _, err := ReadFile(path(name), 100); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if got, err := ReadFile("/proc/self/status", Small); err != nil || !strings.Contains(string(got), "Pid:") {
		t.Errorf("a file of /proc: %q, %v", got, err)
	}
	if _, err := ReadFile("/proc/self/status", 10); !errors.As(err, &large) { // its size is 0
		t.Errorf("a file of /proc: %v", err)
	}
}

func TestReadAll(t *testing.T) {
	if got, err := ReadAll(strings.NewReader("12345"), "n", 5); string(got) != "12345" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := ReadAll(strings.NewReader("123456"), "n", 5); err == nil || err.Error() != "read n: larger than 5 bytes" {
		t.Errorf("%v", err)
	}
}

func TestOutput(t *testing.T) {
	sh := func(script string) *exec.Cmd { return exec.CommandContext(t.Context(), "sh", "-c", script) }
	if got, err := Output(sh("printf abc; printf more >&2"), 3); string(got) != "abc" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	var large *TooLargeError
	if _, err := Output(sh("head -c 1000000 /dev/zero"), 3); !errors.As(err, &large) || !strings.HasPrefix(err.Error(), "read output of /") {
		t.Errorf("%v", err)
	}
	var exit *exec.ExitError
	if _, err := Output(sh("head -c 1000000 /dev/zero >&2; exit 3"), 3); !errors.As(err, &exit) || exit.ExitCode() != 3 || len(exit.Stderr) != 4096 {
		t.Errorf("%v", err)
	}
	if got, err := CombinedOutput(sh("printf abc; printf def >&2; head -c 1000000 /dev/zero; exit 4"), 6); string(got) != "abcdef" || !errors.As(err, &exit) || exit.ExitCode() != 4 {
		t.Errorf("%s, %v", got, err)
	}
}
