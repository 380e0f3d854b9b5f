package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	stateDir         = "/run/systemctl"
	superviseCommand = "supervise" // what start runs in the background
	stopTimeout      = 90 * time.Second
)

// lock is the state file of a service, which has the supervisor's process ID. The supervisor locks
// it while the service is active.
type lock struct{ *os.File }

func openLock(name string) (lock, error) {
	if err := os.MkdirAll(stateDir, 0o755); err != nil {
		return lock{}, fmt.Errorf("open state: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(stateDir, name), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return lock{}, fmt.Errorf("open state: %w", err)
	}
	return lock{file}, nil
}

// try locks the file and reports whether that succeeded.
func (l lock) try() (bool, error) {
	err := unix.Flock(int(l.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// supervised reports whether the service is active: running, or about to be restarted.
func supervised(name string) (bool, error) {
	l, err := openLock(name)
	if err != nil {
		return false, err
	}
	defer l.Close()
	free, err := l.try()
	return !free, err
}

// start returns when the supervisor has started the service. systemd does not wait for more either.
func start(name string) error {
	if running, err := supervised(name); err != nil || running {
		return err
	}
	if _, err := loadService("/", name); err != nil {
		return err
	}
	log, err := os.OpenFile("/var/log/"+name+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close()
	started, signal, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	defer started.Close()
	cmd := exec.Command("/proc/self/exe", superviseCommand, name)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.ExtraFiles = []*os.File{signal}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	signal.Close()
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	if answer, _ := io.ReadAll(started); string(answer) != "ok" {
		return fmt.Errorf("start %s: %s", name, answer)
	}
	return nil
}

// stop returns when the supervisor has exited, and with it the service.
func stop(name string) error {
	l, err := openLock(name)
	if err != nil {
		return err
	}
	defer l.Close()
	if free, err := l.try(); err != nil || free {
		return err
	}
	text, err := io.ReadAll(l)
	if err != nil {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	if err := unix.Kill(pid, unix.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	if err := unix.Flock(int(l.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	return nil
}

// supervise runs the service until SIGTERM, and starts it again when it exits.
func supervise(name string) error {
	ready := os.NewFile(3, "ready")
	unix.CloseOnExec(3) // start waits until it is closed
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, unix.SIGTERM)
	state, err := becomeSupervisor(name)
	if err != nil {
		fmt.Fprint(ready, err)
		ready.Close()
		return err
	}
	defer state.Close()
	for first := true; ; first = false {
		s, process, done, err := launch(name)
		if first {
			report := "ok"
			if err != nil {
				report = err.Error()
			}
			fmt.Fprint(ready, report)
			ready.Close()
		}
		if err != nil {
			return err
		}
		select {
		case err := <-done:
			fmt.Fprintf(os.Stderr, "systemctl: %s exited (%v), restarting it in %v\n", name, err, s.restartDelay)
		case <-stopped:
			return terminate(name, process, done)
		}
		select {
		case <-time.After(s.restartDelay):
		case <-stopped:
			return nil
		}
	}
}

// becomeSupervisor locks the state file and writes this process's ID to it.
func becomeSupervisor(name string) (lock, error) {
	l, err := openLock(name)
	if err != nil {
		return lock{}, err
	}
	if free, err := l.try(); err != nil || !free {
		return lock{}, fmt.Errorf("lock state of %s: it is active (%w)", name, err)
	}
	if err := l.Truncate(0); err != nil {
		return lock{}, fmt.Errorf("write state: %w", err)
	}
	if _, err := fmt.Fprintln(l, os.Getpid()); err != nil {
		return lock{}, fmt.Errorf("write state: %w", err)
	}
	return l, nil
}

// launch starts the service's process in the service's cgroups.
func launch(name string) (*service, *os.Process, <-chan error, error) {
	s, err := loadService("/", name)
	if err != nil {
		return nil, nil, nil, err
	}
	environment, err := s.environment("/")
	if err != nil {
		return nil, nil, nil, err
	}
	if err := enterCgroups(name); err != nil {
		return nil, nil, nil, err
	}
	argv := s.arguments(environment)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = "/", os.Stdout, os.Stderr, variableList(environment)
	if err := cmd.Start(); err != nil {
		return nil, nil, nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	return s, cmd.Process, done, nil
}

// terminate sends SIGTERM, after the timeout SIGKILL, and kills what the process leaves behind, as
// KillMode=control-group does.
func terminate(name string, process *os.Process, done <-chan error) error {
	if err := process.Signal(unix.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	select {
	case <-done:
	case <-time.After(stopTimeout):
		_ = process.Kill()
		<-done
	}
	return killLeftovers(name)
}
