package standalone

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// runtimeGrace is how long containerd may take to exit on SIGTERM. It needs milliseconds.
const runtimeGrace = 10 * time.Second

// containerd keeps the bundled containerd running. Containers are children of their shims, so they survive
// when containerd or Swiftlet exits, and containerd survives when Swiftlet exits.
type containerd struct {
	child
	paths Paths
}

func newContainerd(p Paths, log *slog.Logger, clock clock.Clock) *containerd {
	return &containerd{paths: p, child: child{
		name: "containerd", command: []string{p.program("containerd"), "--config", p.containerdConfig()},
		logFile: p.containerdLog(), log: log, clock: clock,
	}}
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

// runtimeEnv is the environment of programs: without systemd's notification and activation
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
