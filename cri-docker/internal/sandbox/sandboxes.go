// Package sandbox runs pods' sandboxes: pause containers, whose namespaces the pod's containers join.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	dockercontainer "github.com/moby/moby/api/types/container"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/container"
	"swiftlet/cri-docker/internal/engine"
	"swiftlet/cri-docker/internal/labels"
	"swiftlet/cri-docker/internal/network"
)

// Sandboxes acts on sandboxes. What must survive is in Docker and in the cache of libcni.
type Sandboxes struct {
	Engine     *engine.Engine
	Network    *network.Network
	Containers *container.Containers
	PauseImage string
	Log        *slog.Logger

	starting sync.Map // names of sandboxes that Run has not finished: the CRI does not show them yet
}

// Find returns a pause container of this server with its labels.
func (s *Sandboxes) Find(ctx context.Context, id string) (dockercontainer.InspectResponse, labels.Sandbox, error) {
	c, err := s.Engine.Inspect(ctx, id)
	if err != nil {
		return c, labels.Sandbox{}, err
	}
	l, err := labels.DecodeSandbox(c.Name, c.Config.Labels)
	if err != nil {
		return c, l, &notOurs{id: id, err: err}
	}
	return c, l, nil
}

// notOurs makes Docker's containers that are not sandboxes look as if they did not exist.
type notOurs struct {
	id  string
	err error
}

func (e *notOurs) Error() string { return fmt.Sprintf("find sandbox %s: %v", e.id, e.err) }
func (e *notOurs) Unwrap() error { return e.err }
func (e *notOurs) NotFound()     {} // as errdefs knows it

// List lists the sandboxes that match.
func (s *Sandboxes) List(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	found, err := s.Engine.List(ctx, labels.Kind+"="+labels.KindOfPod)
	if err != nil {
		return nil, err
	}
	attached, err := s.Network.Attached()
	if err != nil {
		return nil, err
	}
	var all []*runtimeapi.PodSandbox
	for _, item := range found {
		if p, ok := s.summarize(item, attached); ok && matches(p, filter) {
			all = append(all, p)
		}
	}
	return all, nil
}

func (s *Sandboxes) summarize(item dockercontainer.Summary, attached func(string) bool) (*runtimeapi.PodSandbox, bool) {
	if len(item.Names) == 0 {
		return nil, false // is being removed
	}
	l, err := labels.DecodeSandbox(item.Names[0], item.Labels)
	if err != nil {
		if !errors.Is(err, labels.ErrForeign) {
			s.Log.Warn("ignored a sandbox with unreadable labels", "container", item.ID, "err", err)
		}
		return nil, false
	}
	if s.isStarting(l) {
		return nil, false
	}
	ready := item.State == dockercontainer.StateRunning && (hostNetwork(l.Config) || attached(item.ID))
	return &runtimeapi.PodSandbox{
		Id: item.ID, Metadata: l.Config.GetMetadata(), State: state(ready), CreatedAt: l.CreatedAt,
		Labels: l.Config.GetLabels(), Annotations: l.Config.GetAnnotations(), RuntimeHandler: l.Handler,
	}, true
}

// isStarting says that Run has not finished. A sandbox that is left of an earlier process of this program is not
// starting but not ready, so that the kubelet removes it.
func (s *Sandboxes) isStarting(l labels.Sandbox) bool {
	_, starting := s.starting.Load(labels.SandboxName(l.Config))
	return starting
}

func matches(p *runtimeapi.PodSandbox, f *runtimeapi.PodSandboxFilter) bool {
	return labels.MatchID(p.GetId(), f.GetId()) &&
		(f.GetState() == nil || f.GetState().GetState() == p.GetState()) &&
		labels.MatchLabels(p.GetLabels(), f.GetLabelSelector())
}

func state(ready bool) runtimeapi.PodSandboxState {
	if ready {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

func hostNetwork(c *runtimeapi.PodSandboxConfig) bool {
	return c.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
}
