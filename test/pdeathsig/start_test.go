package pdeathsig

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"swiftlet/test/poll"
)

// The main thread never ends, so no test may run on it.
func init() { runtime.LockOSThread() }

// TestStartOutlivesTheThreadOfItsCaller: threads end while a program runs, as in every test that enters
// another network namespace.
func TestStartOutlivesTheThreadOfItsCaller(t *testing.T) {
	cmd := exec.Command("cat") // reads until its input is closed
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	var thread int
	var exited <-chan error
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		thread = syscall.Gettid()
		var err error
		exited, err = Start(cmd)
		result <- err
	}()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "end of the caller's thread", func() bool {
		return syscall.Tgkill(syscall.Getpid(), thread, 0) == syscall.ESRCH
	})
	input.Close()
	if err := <-exited; err != nil {
		t.Errorf("the program ended with its caller's thread: %v", err)
	}
}

func TestStartReportsAMissingProgram(t *testing.T) {
	if _, err := Start(exec.Command("/no such program")); err == nil {
		t.Error("no error")
	}
}
