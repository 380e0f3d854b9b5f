package restoration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Variables of the process that a test kills.
const (
	dirVariable  = "SWIFTLET_RESTORATION"      // of the node
	killVariable = "SWIFTLET_RESTORATION_KILL" // number of the step before which it is killed; none is killed at 0
)

var keyNames = []string{"ca.crt", "ca.key", "sa.key"}

// TestMain is the process to kill if a test has started it.
func TestMain(m *testing.M) {
	dir := os.Getenv(dirVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	kill, err := strconv.Atoi(os.Getenv(killVariable))
	if err == nil {
		err = restoreUntil(dir, kill)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func dirsOf(dir string) Dirs {
	return Dirs{Data: filepath.Join(dir, "api"), PKI: filepath.Join(dir, "pki")}
}

// restoreUntil restores, prints each step and kills the process before one of them.
func restoreUntil(dir string, kill int) error {
	d := dirsOf(dir)
	number := 0
	d.step = func(name string) {
		number++
		if number == kill {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it arrives
		}
		if kill > 0 || os.Getenv(dirVariable) != "" {
			fmt.Println(name)
		}
	}
	lock, err := Open(d)
	if err != nil {
		return err
	}
	defer lock.Close()
	staging, err := lock.Stage()
	if err != nil {
		return err
	}
	if err := write(staging, Store(staging), "restored"); err != nil {
		return err
	}
	d.step("write staged store") // a kill while it is written
	return lock.Replace(keyNames)
}

// write writes keys and a store with the content.
func write(keys, store, content string) error {
	err := errors.Join(os.MkdirAll(keys, 0o700), os.MkdirAll(filepath.Join(store, "member"), 0o700))
	for _, name := range keyNames {
		err = errors.Join(err, os.WriteFile(filepath.Join(keys, name), []byte(content), 0o600))
	}
	return errors.Join(err, os.WriteFile(filepath.Join(store, "member", "db"), []byte(content), 0o600))
}

// newNode returns the directory of a node with an earlier program's leftovers.
func newNode(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	d := dirsOf(dir)
	if err := errors.Join(write(d.PKI, d.data(storeName), "previous"), os.Mkdir(d.data("restoring-123"), 0o700), os.WriteFile(d.keys(".new-123"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// run restores in a process of its own, and returns the steps that it has begun.
func run(t *testing.T, dir string, kill int) (steps []string, killed bool) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), dirVariable+"="+dir, killVariable+"="+strconv.Itoa(kill))
	var problems strings.Builder
	c.Stderr = &problems
	out, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		killed, err = true, nil
	}
	if err != nil {
		t.Fatalf("restore: %v\n%s", err, problems.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), killed
}

// check opens the node as the next program does. Keys and store must be of one time, and nothing else is there.
func check(t *testing.T, dir string) (content string) {
	t.Helper()
	d := dirsOf(dir)
	lock, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	read := func(path string) string {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		return string(got)
	}
	content = read(d.data(storeName, "member", "db"))
	for _, name := range keyNames {
		if got := read(d.keys(name)); got != content {
			t.Errorf("%s is %s, the store is %s", name, got, content)
		}
	}
	for path, want := range map[string]int{d.Data: 2, d.PKI: len(keyNames)} { // the store and the lock
		if entries, err := os.ReadDir(path); err != nil || len(entries) != want {
			t.Errorf("%s has %v, %v; want %d entries", path, entries, err, want)
		}
	}
	return content
}

// TestKilledAtEveryStep: whenever a restore is killed, the next program finds keys and store of one time.
func TestKilledAtEveryStep(t *testing.T) {
	steps, _ := run(t, newNode(t), 0)
	if len(steps) < 14 {
		t.Fatalf("found only %d steps: %v", len(steps), steps)
	}
	decided := false
	for n, step := range steps {
		t.Run(fmt.Sprintf("%02d_%s", n+1, strings.ReplaceAll(step, " ", "_")), func(t *testing.T) {
			dir := newNode(t)
			if _, killed := run(t, dir, n+1); !killed {
				t.Fatal("the process was not killed")
			}
			want := "previous"
			if decided {
				want = "restored"
			}
			if got := check(t, dir); got != want {
				t.Errorf("the node is %s, want %s", got, want)
			}
		})
		decided = decided || step == "decide"
	}
}

// TestKilledAgain: the restore that completes an interrupted one may be killed as well.
func TestKilledAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("starts hundreds of processes")
	}
	steps, _ := run(t, newNode(t), 0)
	for first := range steps {
		dir := newNode(t)
		for second := 1; ; second++ {
			run(t, dir, first+1)
			if _, killed := run(t, dir, second); !killed {
				break
			}
			check(t, dir)
		}
		if got := check(t, dir); got != "restored" {
			t.Errorf("killed before %q, then restored: the node is %s", steps[first], got)
		}
	}
}

// TestFirstRestore: the machine may be a new one.
func TestFirstRestore(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, 0)
	if got := check(t, dir); got != "restored" {
		t.Errorf("the node is %s", got)
	}
}

func TestOneProcessHasTheLock(t *testing.T) {
	d := dirsOf(t.TempDir())
	lock, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(d); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if lock, err = Open(d); err != nil {
		t.Fatal(err)
	}
	lock.Close()
}
