package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
)

// CreateSandbox makes the pod's log directory and then its sandbox, network included. The
// handler names a runtime class's runtime, "" the default one.
func (r *Runtime) CreateSandbox(ctx context.Context, p *v1.Pod, config *runtimeapi.PodSandboxConfig, handler string) (id string, err error) {
	defer func() { r.measureSandbox(p, err) }()
	if err := os.MkdirAll(config.LogDirectory, 0o755); err != nil {
		return "", r.sandboxFailed(ctx, p, fmt.Errorf("create pod log directory: %w", err))
	}
	began := r.deps.Clock.Now()
	id, err = r.deps.CRI.RunPodSandbox(ctx, config, handler)
	r.deps.Meters.Sandbox.Done(handler, r.deps.Clock.Since(began), err)
	if err != nil {
		return "", r.sandboxFailed(ctx, p, err)
	}
	return id, nil
}

// SandboxFailed tells the user why the runtime is not even asked for a sandbox, and returns
// the error to go on with.
func (r *Runtime) SandboxFailed(ctx context.Context, p *v1.Pod, err error) error {
	r.measureSandbox(p, err)
	return r.sandboxFailed(ctx, p, err)
}

func (r *Runtime) measureSandbox(p *v1.Pod, err error) {
	if r.deps.Meters.Started != nil {
		r.deps.Meters.Started(p, err)
	}
}

func (r *Runtime) sandboxFailed(ctx context.Context, p *v1.Pod, err error) error {
	if ctx.Err() == nil {
		r.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, "FailedCreatePodSandBox", "Failed to create pod sandbox: %s", cri.Text(err))
	}
	message := fmt.Sprintf("Failed to create sandbox for pod %q: %s", pod.RefOf(p), cri.Text(err))
	return &Error{Reason: ReasonCreateSandbox, Message: message, Err: err}
}

// StopSandbox ends what still runs in a sandbox and takes down its network.
func (r *Runtime) StopSandbox(ctx context.Context, id string) error {
	return r.deps.CRI.StopPodSandbox(ctx, id)
}

// RemoveSandbox stops a sandbox, in case nobody has, and removes it with all containers
// in it. The pod's logs stay.
func (r *Runtime) RemoveSandbox(ctx context.Context, id string) error {
	if err := r.deps.CRI.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	return r.deps.CRI.RemovePodSandbox(ctx, id)
}

// PodLogs lists the pods that have a log folder, by its name. Folders that are named
// otherwise are not ours.
func (r *Runtime) PodLogs() ([]pod.Ref, error) {
	entries, err := os.ReadDir(r.cfg.PodLogsDir)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("list pod logs: %w", err)
	}
	var refs []pod.Ref
	for _, e := range entries {
		parts := strings.Split(e.Name(), "_")
		if !e.IsDir() || len(parts) != 3 || slices.Contains(parts, "") {
			continue
		}
		refs = append(refs, pod.Ref{Namespace: parts[0], Name: parts[1], UID: types.UID(parts[2])})
	}
	return refs, nil
}

// RemoveLogs removes the logs of a pod that is gone for good, with the links to them.
func (r *Runtime) RemoveLogs(ref pod.Ref) error {
	if err := os.RemoveAll(r.podLogDir(ref)); err != nil {
		return fmt.Errorf("remove pod logs: %w", err)
	}
	links, err := os.ReadDir(r.cfg.ContainerLogsDir)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove links to pod logs: %w", err)
	}
	for _, l := range links {
		path := filepath.Join(r.cfg.ContainerLogsDir, l.Name())
		target, err := os.Readlink(path)
		if err != nil || !isBelow(target, r.podLogDir(ref)) {
			continue
		}
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("remove link to pod log: %w", err)
		}
	}
	return nil
}
