package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CreateContainer makes the files that config names and then the container, without
// starting it. podIPs are the addresses the pod's hosts file is to show.
func (r *Runtime) CreateContainer(ctx context.Context, p *v1.Pod, sandboxID string, config *runtimeapi.ContainerConfig, sandbox *runtimeapi.PodSandboxConfig, podIPs []string) (id string, err error) {
	name := config.Metadata.Name
	if err := r.makeFiles(p, config, sandbox, podIPs); err != nil {
		return "", r.containerFailed(ctx, p, name, "", ReasonContainerConfig, err)
	}
	id, err = r.deps.CRI.CreateContainer(ctx, sandboxID, config, sandbox)
	if err != nil {
		return "", r.containerFailed(ctx, p, name, "", ReasonCreateContainer, err)
	}
	r.containerEvent(p, name, "", v1.EventTypeNormal, "Created", "Container created")
	return id, nil
}

// ConfigFailed tells the user that a container's configuration or environment could not
// be made out, and returns the error to go on with.
func (r *Runtime) ConfigFailed(ctx context.Context, p *v1.Pod, container string, err error) error {
	return r.containerFailed(ctx, p, container, "", ReasonContainerConfig, err)
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

// makeTerminationLog makes the file that any user in the container may write its last
// words to.
func makeTerminationLog(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("create termination log: %w", err)
	}
	// An earlier try at creating the container may have left it, with or without words.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return fmt.Errorf("create termination log: %w", err)
	}
	defer f.Close()
	if err := f.Chmod(0o666); err != nil { // the umask took bits away
		return fmt.Errorf("open termination log to all users: %w", err)
	}
	return nil
}
