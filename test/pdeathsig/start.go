// Package pdeathsig starts programs that the kernel kills when this process exits for any reason.
package pdeathsig

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts cmd and waits for it in the background; exited then has its error and is closed. The kernel
// kills the program when the thread that started it exits, not only with the process, and the Go runtime
// ends the thread of a goroutine that returns locked to it. So a goroutine keeps the thread until the
// program has exited.
func Start(cmd *exec.Cmd) (exited <-chan error, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started, done := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			done <- cmd.Wait()
		}
		close(done)
	}()
	return done, <-started
}
