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

// step is one kind of thing to take away.
type step struct {
	name string
	run  func() error
}

// lastChance is how long the runtime gets to end pods once the user is in a hurry; then
// their processes are killed behind its back.
const lastChance = 10 * time.Second

// tearDown leaves nothing behind but what is below the root folder. Each step cleans one
// kind of thing and does not rely on the steps before: after a crash, or where one of
// them failed, the later ones sweep up. settle ends the watch over the runtime, so that
// nobody starts it again; it is nil where the runtime never came up.
func (s *Supervisor) tearDown(settle func() *process) error {
	p := s.cfg.Places
	var steps []step
	if settle != nil {
		steps = append(steps, step{"stop the pods", s.endPods}, step{"stop the runtime", func() error {
			runtime := settle()
			defer runtime.close()
			return runtime.stop(context.Background(), runtimeGrace)
		}})
	}
	steps = append(steps, []step{
		{"end the shims", s.killShims},
		{"remove the cgroups", s.removeCgroups},
		{"unmount", func() error { return unmountBelow(p.run, p.root) }},
		{"clean the network", func() error { return cleanNetwork(s.cfg.PodCIDR, p) }},
		{"remove the run folder", func() error { return removeUnmounted(p.run) }},
	}...)
	var problems []error
	for _, step := range steps {
		began := s.deps.Clock.Now()
		if err := step.run(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", step.name, err))
		}
		s.deps.Log.Debug("teardown", "step", step.name, "took", s.deps.Clock.Since(began))
	}
	if len(problems) == 0 {
		s.say("stopped; images and logs stay in %s", p.root)
	}
	return errors.Join(problems...)
}

// endPods bounds stopPods once the user is in a hurry.
func (s *Supervisor) endPods() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	bounded := make(chan struct{})
	go func() {
		defer close(bounded)
		select {
		case <-ctx.Done():
			return
		case <-s.deps.Hurry:
			s.say("not waiting any longer")
		}
		select {
		case <-ctx.Done():
		case <-s.deps.Clock.After(lastChance):
			cancel()
		}
	}()
	err := s.stopPods(ctx, s.deps.Hurry)
	cancel()
	<-bounded
	return err
}

func (s *Supervisor) removeCgroups() error {
	if s.cfg.SystemdCgroups {
		return nil // systemd removes its empty slices
	}
	return removeCgroups()
}

// killShims ends the shims that are left: one whose pod was removed has gone by itself.
func (s *Supervisor) killShims() error {
	for _, pid := range s.shims() {
		s.deps.Log.Warn("killing a shim that was left over", "pid", pid)
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill shim %d: %w", pid, err)
		}
	}
	return nil
}

// shims finds the shims that serve our containerd, by their command line.
func (s *Supervisor) shims() []int {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []int
	for _, file := range commands {
		content, err := readStart(file)
		if err != nil || !isShim(strings.Split(string(content), "\x00"), s.cfg.Places.Socket()) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// readStart reads the beginning of a command line: a process can make its own as long as it
// likes.
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
