package standalone

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/backoff"
)

const (
	// A runtime that was up this long is restarted at once; one that keeps failing waits longer each time.
	steadyAfter    = time.Minute
	firstRestart   = 100 * time.Millisecond
	longestRestart = 10 * time.Second
	// runtimeGrace is what containerd gets to flush its state; it takes milliseconds.
	runtimeGrace = 10 * time.Second
	logKeep      = 10 << 20
)

// containerd keeps the bundled containerd running. The containers are not its children
// but their shims', so its end, and ours, leaves them alone.
type containerd struct {
	places  Places
	log     *slog.Logger
	clock   clock.Clock
	current *process
}

// begin takes over the containerd that an earlier instance left running, unless its
// program or configuration is no longer ours; otherwise it starts one.
func (c *containerd) begin(ctx context.Context, configChanged bool) error {
	running, err := listener(c.places.Socket())
	if err != nil {
		return err
	}
	if running == nil {
		return c.start()
	}
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", running.pid))
	if err == nil && program == c.places.program("containerd") && !configChanged {
		c.log.Info("took over the running containerd", "pid", running.pid)
		c.current = running
		return nil
	}
	c.log.Info("replacing the running containerd; its pods stay", "pid", running.pid, "program", program)
	defer running.close()
	if err := running.stop(ctx, runtimeGrace); err != nil {
		return fmt.Errorf("replace the running containerd: %w", err)
	}
	return c.start()
}

// start runs containerd in a session of its own: a Ctrl-C on our terminal is for us, and
// nothing in the kernel ties its life, or the shims', to ours.
func (c *containerd) start() error {
	output, err := OpenLog(c.places.containerdLog())
	if err != nil {
		return err
	}
	defer output.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("start containerd: %w", err)
	}
	defer null.Close()
	program := c.places.program("containerd")
	child, err := os.StartProcess(program, []string{program, "--config", c.places.containerdConfig()}, &os.ProcAttr{
		Dir: "/", Env: runtimeEnv(os.Environ()), Files: []*os.File{null, output, output},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("start containerd: %w", err)
	}
	started, err := openProcess(child.Pid)
	if err != nil {
		return fmt.Errorf("start containerd: %w", err)
	}
	_ = child.Release() // process waits for it, by its own descriptor
	c.current = started
	c.log.Info("started containerd", "pid", started.pid)
	return nil
}

// run restarts containerd whenever it ends, until ctx is done; it leaves it running.
func (c *containerd) run(ctx context.Context) error {
	restart, since := backoff.Backoff{First: firstRestart, Longest: longestRestart}, c.clock.Now()
	for {
		if err := c.current.wait(ctx); err != nil {
			return err
		}
		c.current.close()
		up := c.clock.Since(since)
		if up >= steadyAfter {
			restart.Reset()
		}
		pause := restart.Next()
		c.log.Warn("containerd ended; starting it again, pods go on", "was_up", up.Round(time.Millisecond), "in", pause, "log", c.places.containerdLog())
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-c.clock.After(pause):
			}
			since = c.clock.Now()
			err := c.start()
			if err == nil {
				break
			}
			pause = restart.Next()
			c.log.Error("starting containerd failed", "err", err, "in", pause)
		}
	}
}

// runtimeEnv drops what must not reach containers' runtime: systemd's readiness socket is
// for swiftlet, and the CNI plugins need the folders of the filter programs in PATH.
func runtimeEnv(env []string) []string {
	kept := []string{"PATH=" + runtimePath(os.Getenv("PATH"))}
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if name == "PATH" || name == "NOTIFY_SOCKET" || strings.HasPrefix(name, "LISTEN_") {
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

func runtimePath(path string) string {
	dirs := strings.Split(path, ":")
	for _, dir := range []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		if !strings.Contains(":"+path+":", ":"+dir+":") {
			dirs = append(dirs, dir)
		}
	}
	return strings.Trim(strings.Join(dirs, ":"), ":")
}

// OpenLog opens a log of ours: it appends, and keeps one file before it once it has grown.
func OpenLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logKeep {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, fmt.Errorf("rotate %s: %w", path, err)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return f, nil
}
