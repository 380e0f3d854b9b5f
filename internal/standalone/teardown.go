package standalone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// step removes one kind of resource.
type step struct {
	name string
	run  func() error
}

// forcedStopTimeout is how long the runtime may take to stop pods after the second signal. Then
// killShims and removeCgroups kill their processes without the runtime.
const forcedStopTimeout = 10 * time.Second

// teardown removes everything except the files below the root directory. Each step removes one
// kind of resource and does not rely on the steps before it, which may have failed.
// stopWatching ends the supervision of the runtime, so that it is not restarted; it is nil if
// the runtime never started.
func (s *Supervisor) teardown(stopWatching func() *containerd) error {
	p := s.cfg.Paths
	var steps []step
	if stopWatching != nil {
		steps = append(steps, step{"stop pods", s.stopPodsBounded}, step{"stop runtime", func() error {
			return stopWatching().stop(runtimeGrace)
		}})
	}
	steps = append(steps, []step{
		{"kill shims", s.killShims},
		{"remove cgroups", s.removeCgroups},
		{"unmount", func() error { return unmountBelow(p.run, p.root) }},
		{"clean up network", func() error { return cleanNetwork(s.cfg.PodCIDR, p) }},
		{"remove run directory", func() error { return removeUnmounted(p.run) }},
	}...)
	var problems []error
	for _, step := range steps {
		began := s.deps.Clock.Now()
		if err := step.run(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", step.name, err))
		}
		s.deps.Log.Debug("teardown: step done", "step", step.name, "took", s.deps.Clock.Since(began))
	}
	if len(problems) == 0 {
		s.progress("stopped; images and logs stay in %s", p.root)
	}
	return errors.Join(problems...)
}

// stopPodsBounded runs stopPods and cancels it forcedStopTimeout after the second signal.
func (s *Supervisor) stopPodsBounded() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	watcherDone := make(chan struct{})
	go func() {
		defer close(watcherDone)
		select {
		case <-ctx.Done():
			return
		case <-s.deps.ForceStop:
			s.progress("second signal: stopping pods without grace period")
		}
		select {
		case <-ctx.Done():
		case <-s.deps.Clock.After(forcedStopTimeout):
			cancel()
		}
	}()
	err := s.stopPods(ctx, s.deps.ForceStop)
	cancel()
	<-watcherDone
	return err
}

func (s *Supervisor) removeCgroups() error {
	if s.cfg.SystemdCgroups {
		return nil // systemd removes its empty slices
	}
	return removeCgroups(s.deps.Clock)
}

// killShims kills the shims that are left. A shim exits when its pod is removed.
func (s *Supervisor) killShims() error {
	for _, pid := range s.shims() {
		s.deps.Log.Warn("teardown: killing leftover shim", "pid", pid)
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill shim %d: %w", pid, err)
		}
	}
	return nil
}

// shims finds the shims of our containerd by their command line.
func (s *Supervisor) shims() []int {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []int
	for _, file := range commands {
		content, err := readStart(file)
		if err != nil || !isShim(strings.Split(string(content), "\x00"), s.cfg.Paths.Socket()) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// readStart reads the first 64 KiB of a command line, which has no limit.
func readStart(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 64<<10))
}

func isShim(args []string, socket string) bool {
	if len(args) == 0 || filepath.Base(args[0]) != "containerd-shim-runc-v2" {
		return false
	}
	i := slices.Index(args, "-address")
	return i >= 0 && i+1 < len(args) && args[i+1] == socket
}
