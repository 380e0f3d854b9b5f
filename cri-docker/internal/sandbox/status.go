package sandbox

import (
	"context"
	"errors"

	dockercontainer "github.com/moby/moby/api/types/container"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/labels"
)

// Status returns the status of a sandbox that was started.
func (s *Sandboxes) Status(ctx context.Context, id string) (*runtimeapi.PodSandboxStatus, error) {
	c, l, err := s.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if s.isStarting(l) {
		return nil, &notOurs{id: id, err: errStarting}
	}
	return s.read(c, l)
}

var errStarting = errors.New("it is being started")

func (s *Sandboxes) read(c dockercontainer.InspectResponse, l labels.Sandbox) (*runtimeapi.PodSandboxStatus, error) {
	if hostNetwork(l.Config) {
		return Describe(c, l, nil), nil
	}
	ips, err := s.Network.IPs(c.ID)
	if err != nil {
		return nil, err
	}
	return Describe(c, l, ips), nil
}

// Describe derives the status of a sandbox from what Docker and the labels say. A sandbox without addresses
// is not ready: the server was ended before the network was attached, or the network is detached already.
func Describe(c dockercontainer.InspectResponse, l labels.Sandbox, ips []string) *runtimeapi.PodSandboxStatus {
	running := c.State != nil && c.State.Running
	p := &runtimeapi.PodSandboxStatus{
		Id: c.ID, Metadata: l.Config.GetMetadata(), CreatedAt: l.CreatedAt,
		State:  state(running && (hostNetwork(l.Config) || len(ips) > 0)),
		Labels: l.Config.GetLabels(), Annotations: l.Config.GetAnnotations(), RuntimeHandler: l.Handler,
		Network: &runtimeapi.PodSandboxNetworkStatus{},
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
			Options: l.Config.GetLinux().GetSecurityContext().GetNamespaceOptions()}},
	}
	if len(ips) > 0 {
		p.Network.Ip = ips[0]
		for _, ip := range ips[1:] {
			p.Network.AdditionalIps = append(p.Network.AdditionalIps, &runtimeapi.PodIP{Ip: ip})
		}
	}
	return p
}
