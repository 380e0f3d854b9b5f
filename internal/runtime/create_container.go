package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
)

// Container is a container that is ready to be created.
type Container struct {
	Name string
	// RestartCount numbers the instances of the container, from 0.
	RestartCount int

	in     Input
	config *runtimeapi.ContainerConfig
}

// PrepareContainer builds a container's configuration from what gather returns. It touches no
// file; CreateContainer makes those that the configuration names. An error, that of gather
// included, is recorded as an event and has the reason CreateContainerConfigError.
func (r *Runtime) PrepareContainer(ctx context.Context, p *v1.Pod, c *v1.Container, gather func() (Input, error)) (*Container, error) {
	in, err := gather()
	if err != nil {
		return nil, r.containerFailed(ctx, p, c.Name, "", ReasonContainerConfig, err)
	}
	if in.NoInstance {
		in.RestartCount = max(in.RestartCount, r.restartCountFromLogs(pod.RefOf(p), c.Name))
	}
	config, err := r.containerConfig(in)
	if err != nil {
		return nil, r.containerFailed(ctx, p, c.Name, "", ReasonContainerConfig, err)
	}
	return &Container{Name: c.Name, RestartCount: in.RestartCount, in: in, config: config}, nil
}

// restartCountFromLogs treats logs that cannot be listed as no logs.
func (r *Runtime) restartCountFromLogs(ref pod.Ref, container string) int {
	n, err := r.nextLogNumber(ref, container)
	if err != nil {
		r.deps.Log.Warn("create container: cannot read restart count from logs", ref.Attr(), "container", container, "err", err)
	}
	return n
}

// CreateContainer makes the files that the configuration names and creates the container. It
// does not start it.
func (r *Runtime) CreateContainer(ctx context.Context, c *Container) (id string, err error) {
	p, sandbox := c.in.Pod, c.in.Sandbox.config
	if err := r.makeFiles(p, c.config, sandbox, c.in.HostsIPs); err != nil {
		return "", r.containerFailed(ctx, p, c.Name, "", ReasonContainerConfig, err)
	}
	id, err = r.deps.CRI.CreateContainer(ctx, c.in.SandboxID, c.config, sandbox)
	if err != nil {
		return "", r.containerFailed(ctx, p, c.Name, "", ReasonCreateContainer, err)
	}
	r.containerEvent(p, c.Name, "", v1.EventTypeNormal, "Created", "Container created")
	return id, nil
}

// makeFiles makes the container's log directory, hosts file and termination log.
func (r *Runtime) makeFiles(p *v1.Pod, config *runtimeapi.ContainerConfig, sandbox *runtimeapi.PodSandboxConfig, podIPs []string) error {
	logDir := filepath.Dir(filepath.Join(sandbox.LogDirectory, config.LogPath))
	if err := os.MkdirAll(logDir, 0o755); err != nil {
		return fmt.Errorf("create container log directory for container %s failed: %w", config.Metadata.Name, err)
	}
	own := r.containerDir(string(p.UID), config.Metadata.Name)
	for _, m := range config.Mounts {
		switch {
		case m.HostPath == r.hostsPath(p):
			if err := r.deps.DNS.EnsureHosts(m.HostPath, p, podIPs); err != nil {
				return err
			}
		case filepath.Dir(m.HostPath) == own:
			if err := makeTerminationLog(m.HostPath); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeTerminationLog makes the termination log, which every user in the container may write.
func makeTerminationLog(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("create termination log: %w", err)
	}
	// An earlier attempt to create the container may have left the file.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return fmt.Errorf("create termination log: %w", err)
	}
	defer f.Close()
	if err := f.Chmod(0o666); err != nil { // the umask removed bits
		return fmt.Errorf("open termination log to all users: %w", err)
	}
	return nil
}
