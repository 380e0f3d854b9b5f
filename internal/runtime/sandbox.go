package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
)

// Handler is the container runtime that runs a pod.
type Handler struct {
	Name              string // "" is the default one
	RecursiveReadOnly bool
}

// SandboxRequest describes a sandbox that a pod has or needs.
type SandboxRequest struct {
	Pod *v1.Pod
	// Attempt numbers the sandboxes of the pod.
	Attempt uint32
	// CgroupParent is the pod's cgroup.
	CgroupParent string
	// Handler finds the runtime that the pod's runtime class names.
	Handler func(*v1.Pod) (Handler, error)
	// New: the sandbox is to be created; failures are recorded as events.
	New bool
}

// Sandbox is the configuration of a pod's sandbox.
type Sandbox struct {
	Handler Handler
	pod     *v1.Pod
	config  *runtimeapi.PodSandboxConfig
}

// Config returns the CRI configuration of the sandbox.
func (s *Sandbox) Config() *runtimeapi.PodSandboxConfig { return s.config }

// PrepareSandbox builds the configuration of the pod's sandbox. A sandbox that exists keeps its
// runtime, even if the RuntimeClass no longer exists.
func (r *Runtime) PrepareSandbox(ctx context.Context, of SandboxRequest) (*Sandbox, error) {
	handler, err := of.Handler(of.Pod)
	if err != nil {
		if of.New {
			return nil, r.prepareFailed(ctx, of.Pod, err)
		}
		r.deps.Log.Warn("prepare sandbox: cannot find runtime class of existing sandbox", pod.RefOf(of.Pod).Attr(), "err", err)
	}
	config, err := r.sandboxConfig(of.Pod, of.Attempt, of.CgroupParent)
	switch {
	case err != nil && of.New:
		return nil, r.prepareFailed(ctx, of.Pod, err)
	case err != nil:
		return nil, fmt.Errorf("configure sandbox: %w", err)
	}
	return &Sandbox{Handler: handler, pod: of.Pod, config: config}, nil
}

// CreateSandbox makes the pod's log directory and creates its sandbox with its network. It
// returns the sandbox's IPs, none on the host's network.
func (r *Runtime) CreateSandbox(ctx context.Context, s *Sandbox) (id string, ips []string, err error) {
	id, err = r.runSandbox(ctx, s)
	r.measureSandbox(s.pod, err)
	if err != nil || s.pod.Spec.HostNetwork {
		return id, nil, err
	}
	ips, err = r.deps.CRI.SandboxIPs(ctx, id)
	if err != nil {
		return "", nil, fmt.Errorf("read sandbox IPs: %w", err)
	}
	return id, ips, nil
}

func (r *Runtime) runSandbox(ctx context.Context, s *Sandbox) (id string, err error) {
	if err := os.MkdirAll(s.config.LogDirectory, 0o755); err != nil {
		return "", r.sandboxFailed(ctx, s.pod, fmt.Errorf("create pod log directory: %w", err))
	}
	began := r.deps.Clock.Now()
	id, err = r.deps.CRI.RunPodSandbox(ctx, s.config, s.Handler.Name)
	r.deps.Meters.Sandbox.Done(s.Handler.Name, r.deps.Clock.Since(began), err)
	if err != nil {
		return "", r.sandboxFailed(ctx, s.pod, err)
	}
	return id, nil
}

// prepareFailed is sandboxFailed for a sandbox that was not requested from the runtime; it counts
// the attempt as well.
func (r *Runtime) prepareFailed(ctx context.Context, p *v1.Pod, err error) error {
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

// removeSandbox stops a sandbox that may still run, and removes it with its containers. It keeps
// the pod's logs.
func (r *Runtime) removeSandbox(ctx context.Context, id string) error {
	if err := r.deps.CRI.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	return r.deps.CRI.RemovePodSandbox(ctx, id)
}

// PodLogs lists the pods that have a log directory, by its name. It ignores directories with
// other names.
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

// RemoveLogs removes the log directory of a pod that has been removed, and the links to its logs.
func (r *Runtime) RemoveLogs(ref pod.Ref) error {
	// A directory whose name is too long was never created.
	if err := r.deps.RemoveTree(r.podLogDir(ref)); err != nil && !errors.Is(err, unix.ENAMETOOLONG) {
		return fmt.Errorf("remove pod logs: %w", err)
	}
	links, err := os.ReadDir(r.cfg.ContainerLogsDir)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove links to pod logs: %w", err)
	}
	prefix := logLinkPrefix(ref)
	for _, l := range links {
		if !strings.HasPrefix(l.Name(), prefix) {
			continue // reading the links of all pods takes longer than the rest of a pod's end
		}
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
