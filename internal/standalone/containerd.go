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
	// stableAfter is how long containerd must run for its restart back-off to be reset.
	stableAfter     = time.Minute
	minRestartDelay = 100 * time.Millisecond
	maxRestartDelay = 10 * time.Second
	// runtimeGrace is how long containerd may take to exit on SIGTERM. It needs milliseconds.
	runtimeGrace = 10 * time.Second
)

// containerd keeps the bundled containerd running. Containers are children of their shims, so
// they survive when containerd or Swiftlet exits.
type containerd struct {
	paths   Paths
	log     *slog.Logger
	clock   clock.Clock
	current *process
}

// adoptOrStart adopts a containerd that an earlier instance left running. If that one has
// another executable or configuration, it is replaced; if there is none, one is started.
func (c *containerd) adoptOrStart(ctx context.Context, configChanged bool) error {
	running, err := listener(c.paths.Socket())
	if err != nil {
		return err
	}
	if running == nil {
		return c.start()
	}
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", running.pid))
	if err == nil && program == c.paths.program("containerd") && !configChanged {
		c.log.Info("containerd: adopted running process", "pid", running.pid)
		c.current = running
		return nil
	}
	c.log.Info("containerd: replacing running process, pods keep running", "pid", running.pid, "program", program)
	defer running.close()
	if err := running.stop(ctx, runtimeGrace); err != nil {
		return fmt.Errorf("replace running containerd: %w", err)
	}
	return c.start()
}

// start runs containerd in its own session, so that a Ctrl-C on the terminal does not reach
// it and it survives when Swiftlet exits.
func (c *containerd) start() error {
	output, err := openAppend(c.paths.containerdLog())
	if err != nil {
		return err
	}
	defer output.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("start containerd: %w", err)
	}
	defer null.Close()
	program := c.paths.program("containerd")
	child, err := os.StartProcess(program, []string{program, "--config", c.paths.containerdConfig()}, &os.ProcAttr{
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
	_ = child.Release() // c.current waits for the process through its pidfd
	c.current = started
	c.log.Info("containerd: started", "pid", started.pid)
	return nil
}

// run restarts containerd whenever it exits, until ctx is done. It does not stop containerd.
func (c *containerd) run(ctx context.Context) error {
	restart, since := backoff.Backoff{First: minRestartDelay, Longest: maxRestartDelay}, c.clock.Now()
	for {
		if err := c.current.wait(ctx); err != nil {
			return err
		}
		c.current.close()
		up := c.clock.Since(since)
		if up >= stableAfter {
			restart.Reset()
		}
		pause := restart.Next()
		c.log.Warn("containerd: exited, restarting, pods keep running", "uptime", up.Round(time.Millisecond), "delay", pause, "log", c.paths.containerdLog())
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
			c.log.Error("containerd: restart failed", "err", err, "delay", pause)
		}
	}
}

// runtimeEnv is containerd's environment: without systemd's notification and activation
// sockets, which are for Swiftlet, and with nft and iptables in PATH for the CNI plugins.
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
