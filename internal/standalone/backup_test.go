package standalone

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"swiftlet/internal/restoration"
	"swiftlet/test/poll"
)

// rootVariable is the directory of the node of a process that a test starts.
const rootVariable = "SWIFTLET_TEST_RESTORE_ROOT"

// TestRestoreEndsWithItsParent: a restore that outlived `swiftlet restore` would replace the store below the next
// `swiftlet up`.
func TestRestoreEndsWithItsParent(t *testing.T) {
	if root := os.Getenv(rootVariable); root != "" {
		s := &Supervisor{cfg: Config{Paths: Paths{root: root}, API: &APIConfig{Programs: root}}, deps: Deps{Out: os.Stdout}}
		t.Log(s.onStore(t.Context(), "restore", "file"))
		return
	}
	root := t.TempDir()
	// Its process is that of the program. It prints its ID and waits.
	if err := os.WriteFile(filepath.Join(root, apiServerProgram), []byte("#!/bin/sh\necho $$\nexec sleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(os.Args[0], "-test.run=^TestRestoreEndsWithItsParent$")
	parent.Env = append(os.Environ(), rootVariable+"="+root)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(io.LimitReader(out, 100)).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(child, syscall.SIGKILL) }()
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	poll.Until(t, "end of the restore", func() bool { return !processRuns(child) })
}

// processRuns reports whether a process exists that has not ended.
func processRuns(process int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(process), "stat"))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

// TestInterruptedRestoreIsCompleted: `swiftlet up` reads the keys before it starts the API server.
func TestInterruptedRestoreIsCompleted(t *testing.T) {
	p := Paths{root: t.TempDir()}
	s := &Supervisor{cfg: Config{Paths: p}}
	if err := s.finishRestore(); err != nil {
		t.Errorf("of a node without an API server: %v", err)
	}
	staged := filepath.Join(filepath.Dir(p.pki("x")), ".restoring")
	decided := filepath.Join(p.apiData(), "restored")
	for _, dir := range []string{staged, restoration.Store(decided)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(staged, "ca.key"), []byte("restored"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.finishRestore(); err != nil {
		t.Fatal(err)
	}
	if key, err := os.ReadFile(p.pki("ca.key")); err != nil || string(key) != "restored" {
		t.Errorf("the key is %q, %v", key, err)
	}
	if _, err := os.Stat(restoration.Store(p.apiData())); err != nil {
		t.Errorf("the store: %v", err)
	}
}
