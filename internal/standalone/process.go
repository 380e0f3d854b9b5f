package standalone

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// process is a running program. It need not be a child: an earlier instance of Swiftlet may
// have started containerd.
type process struct {
	pid int
	fd  *os.File // a pidfd: unlike pid, it never refers to another process later
}

func openProcess(pid int) (*process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	return &process{pid: pid, fd: os.NewFile(uintptr(fd), fmt.Sprintf("pidfd:%d", pid))}, nil
}

func (p *process) close() { p.fd.Close() }

// hasOpen reports whether the process has the file open.
func (p *process) hasOpen(path string) (bool, error) {
	wanted, err := os.Stat(path)
	if err != nil {
		return false, fmt.Errorf("read open files of process %d: %w", p.pid, err)
	}
	dir := fmt.Sprintf("/proc/%d/fd", p.pid)
	open, err := os.ReadDir(dir)
	if err != nil {
		return false, fmt.Errorf("read open files of process %d: %w", p.pid, err)
	}
	for _, f := range open {
		if found, err := os.Stat(filepath.Join(dir, f.Name())); err == nil && os.SameFile(found, wanted) {
			return true, nil
		}
	}
	return false, nil
}

// wait blocks until the process has exited (nil) or ctx is done. It reaps a child.
func (p *process) wait(ctx context.Context) error {
	conn, err := p.fd.SyscallConn()
	if err != nil {
		return fmt.Errorf("wait for process %d: %w", p.pid, err)
	}
	if err := p.fd.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("wait for process %d: %w", p.pid, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = p.fd.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err = conn.Read(func(fd uintptr) bool { return readable(int(fd)) })
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("wait for process %d: %w", p.pid, err)
	}
	var status unix.WaitStatus
	_, _ = unix.Wait4(p.pid, &status, unix.WNOHANG, nil) // ECHILD if it is not a child
	return nil
}

// readable reports whether the pidfd is readable, which means that the process has exited.
func readable(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1
}

func (p *process) signal(s unix.Signal) error {
	conn, err := p.fd.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	if err := conn.Control(func(fd uintptr) { sendErr = unix.PidfdSendSignal(int(fd), s, nil, 0) }); err != nil {
		return err
	}
	if errors.Is(sendErr, unix.ESRCH) {
		return nil
	}
	return sendErr
}

// stop sends SIGTERM and, after the grace period, SIGKILL.
func (p *process) stop(ctx context.Context, grace time.Duration) error {
	if err := p.signal(unix.SIGTERM); err != nil {
		return fmt.Errorf("stop process %d: %w", p.pid, err)
	}
	graceful, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if p.wait(graceful) == nil {
		return nil
	}
	if err := p.signal(unix.SIGKILL); err != nil {
		return fmt.Errorf("kill process %d: %w", p.pid, err)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return p.wait(last)
}

// listener finds the process that listens on a unix socket; nil if there is none.
func listener(socket string) (*process, error) {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("find who listens on %s: %w", socket, err)
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("find who listens on %s: %w", socket, err)
	}
	var peer *unix.Ucred
	var optErr error
	err = raw.Control(func(fd uintptr) { peer, optErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, optErr); err != nil {
		return nil, fmt.Errorf("find who listens on %s: %w", socket, err)
	}
	return openProcess(int(peer.Pid))
}
