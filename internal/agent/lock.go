package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// claim takes the lock file that keeps two agents off one node, where one is configured.
func (a *Agent) claim(ctx context.Context) (unlock func(), err error) {
	path := a.cfg.Flags.LockFile
	if path == "" {
		return func() {}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	how := unix.LOCK_EX
	if a.cfg.Flags.ExitOnLockContention {
		how |= unix.LOCK_NB
	}
	a.log.Info("waiting for the lock file", "path", path)
	if err := unix.Flock(int(f.Fd()), how); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, ctx.Err()
}

// nameNode decides what this node is called.
func (a *Agent) nameNode(context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read the host name: %w", err)
	}
	a.hostname = strings.ToLower(strings.TrimSpace(host))
	if a.cfg.Flags.HostnameOverride != "" {
		a.hostname = strings.ToLower(strings.TrimSpace(a.cfg.Flags.HostnameOverride))
	}
	if a.hostname == "" {
		return errors.New("the host has no name and --hostname-override gives none")
	}
	a.name = a.hostname
	return nil
}
