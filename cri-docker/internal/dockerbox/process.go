package dockerbox

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

// reaperVariable makes a test binary the reaper of a box.
const reaperVariable = "DOCKERBOX_REAPER"

// Main must be called first by the TestMain of a package that uses boxes. It does not return in a reaper.
func Main() {
	if os.Getenv(reaperVariable) == "" {
		return
	}
	exited := make(chan os.Signal, 1)
	signal.Notify(exited, syscall.SIGCHLD)
	for {
		for pid, err := 1, error(nil); err == nil && pid > 0; {
			pid, err = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
		<-exited
	}
}

// Process is a program that the kernel kills when this process exits.
type Process struct {
	cmd  *exec.Cmd
	Done chan struct{} // closed when it has exited
}

// startProcess starts a program from a thread that lives as long as the program does: the kernel sends the
// signal when the thread exits.
func startProcess(cmd *exec.Cmd, log string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	p := &Process{cmd: cmd, Done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is killed
		}
		close(p.Done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// PID is the process's ID outside of the box.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill kills it and waits.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have exited
	<-p.Done
}

// Terminate sends SIGTERM to the program, which is a child of nsenter, and waits.
func (p *Process) Terminate() error {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.PID(), p.PID()))
	if err != nil {
		return fmt.Errorf("terminate: %w", err)
	}
	var child int
	if _, err := fmt.Sscan(string(children), &child); err != nil {
		return fmt.Errorf("terminate: %w", err)
	}
	if err := syscall.Kill(child, syscall.SIGTERM); err != nil {
		return fmt.Errorf("terminate: %w", err)
	}
	<-p.Done
	return nil
}
