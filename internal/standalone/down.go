package standalone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"swiftlet/internal/boundedio"
)

// Down stops the instance that is up, and what it or an earlier one has left running, such as pods after --keep.
// It uses Config's Paths, PodCIDR and SystemdCgroups, which must be those of the instance, and no Agent.
func Down(ctx context.Context, cfg Config, deps Deps) error {
	if err := checkRoot(cfg); err != nil {
		return fmt.Errorf("check root: %w", err)
	}
	if err := checkDirectories(cfg); err != nil { // before a file there names the process to stop
		return fmt.Errorf("check directories: %w", err)
	}
	s := &Supervisor{cfg: cfg, deps: deps}
	stopped, err := s.stopInstance(ctx)
	if err != nil {
		return err
	}
	if !exists(cfg.Paths.hostState()) {
		if !stopped {
			s.progress("nothing is up")
		}
		return nil
	}
	lock, err := s.acquireLock()
	if err != nil {
		return err
	}
	defer s.releaseLock(lock)
	runtime := newContainerd(cfg.Paths, deps.Log, deps.Clock)
	if runtime.current, err = listener(cfg.Paths.Socket()); err != nil {
		return err
	}
	if runtime.current == nil {
		return s.teardown(nil)
	}
	return s.teardown(func() *containerd { return runtime })
}

// stopInstance stops the instance that holds the lock, and waits for its end.
func (s *Supervisor) stopInstance(ctx context.Context) (stopped bool, err error) {
	pid, err := lockHolder(s.cfg.Paths.lock())
	if err != nil || pid == 0 {
		return false, err
	}
	instance, err := openProcess(pid)
	if err != nil {
		return false, err
	}
	defer instance.close()
	holds, err := instance.hasOpen(s.cfg.Paths.lock())
	if err != nil {
		return false, err
	}
	if !holds { // an instance that starts has not replaced the PID of the last one yet
		return false, fmt.Errorf("stop process %d: it does not hold the lock %s; try again", pid, s.cfg.Paths.lock())
	}
	s.progress("stopping process %d", pid)
	if err := instance.signal(unix.SIGTERM); err != nil {
		return false, fmt.Errorf("stop process %d: %w", pid, err)
	}
	return true, instance.wait(ctx)
}

// lockHolder returns the process that holds the lock, 0 if there is none.
func lockHolder(path string) (pid int, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("find running instance: %w", err)
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		return 0, nil // closing the file releases it
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return 0, fmt.Errorf("find running instance: %w", err)
	}
	holder, err := boundedio.ReadFile(path, boundedio.Small)
	if err != nil {
		return 0, fmt.Errorf("find running instance: %w", err)
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(string(holder))); err != nil {
		return 0, fmt.Errorf("find running instance: read %s: %w", path, err)
	}
	return pid, nil
}
