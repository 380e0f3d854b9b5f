package dockerbox

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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

// Kill kills it with SIGKILL and waits. nsenter is killed; the kernel kills its child, the program, then.
func (p *Process) Kill() {
	program, err := p.program()
	_ = p.cmd.Process.Kill() // it may have exited
	<-p.Done
	if err != nil {
		return // it has exited, or is PID 1 of a box, which has no parent in between
	}
	poll := []unix.PollFd{{Fd: int32(program), Events: unix.POLLIN}}
	for err := unix.EINTR; err == unix.EINTR; {
		_, polled := unix.Poll(poll, int(killLimit/time.Millisecond))
		err, _ = polled.(syscall.Errno)
	}
	_ = unix.Close(program) // only waited on
}

const killLimit = 30 * time.Second

// program returns a descriptor of nsenter's child.
func (p *Process) program() (pidfd int, err error) {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.PID(), p.PID()))
	if err != nil {
		return 0, fmt.Errorf("find program: %w", err)
	}
	var child int
	if _, err := fmt.Sscan(string(children), &child); err != nil {
		return 0, fmt.Errorf("find program: %w", err)
	}
	return unix.PidfdOpen(child, 0)
}

// Terminate sends SIGTERM to the program and waits.
func (p *Process) Terminate() error {
	program, err := p.program()
	if err != nil {
		return err
	}
	defer unix.Close(program)
	if err := unix.PidfdSendSignal(program, unix.SIGTERM, nil, 0); err != nil {
		return fmt.Errorf("terminate: %w", err)
	}
	<-p.Done
	return nil
}
