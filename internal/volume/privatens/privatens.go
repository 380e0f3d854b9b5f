// Package privatens runs tests that mount in a private mount namespace.
package privatens

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

const marker = "SWIFTLET_TEST_PRIVATE_NAMESPACE"

// Main runs the tests in a mount namespace of their own, so that nothing stays mounted after them.
// Call it from TestMain.
func Main(m *testing.M) {
	if os.Getenv(marker) != "" {
		os.Exit(m.Run())
	}
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "these tests mount and need root: skipped")
		os.Exit(0)
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), marker+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "start tests in a private namespace:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
