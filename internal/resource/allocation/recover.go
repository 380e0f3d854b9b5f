package allocation

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/statefile"
)

// OpenOrRecover is Open; it moves a corrupt file aside as *.bad: the node must start. The allocations of
// running pods are then found again in their status.
func OpenOrRecover(path string, log *slog.Logger) (*State, error) {
	s, err := Open(path)
	if !errors.Is(err, statefile.ErrCorrupt) {
		return s, err
	}
	aside, asideErr := statefile.SetAside(path, ".bad")
	if asideErr != nil {
		return nil, fmt.Errorf("%w (%w)", asideErr, err)
	}
	log.Error("pod resources: state file is corrupt, moving it aside; the resources of running pods are found again", "path", path, "aside", aside, "err", err)
	if s, err = Open(path); err == nil {
		s.recovering = true
	}
	return s, err
}

// recovered returns the allocation of a pod whose containers run, from its status, after the state file was
// lost. A container without a status has that of its spec.
func recovered(p *v1.Pod) (r pod.Resources, found bool) {
	r = pod.ResourcesOf(p)
	for _, list := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			have, known := r.Containers[c.Name]
			if !known || c.AllocatedResources == nil && c.Resources == nil {
				continue
			}
			found = true
			if c.Resources != nil {
				have.Limits = resized(have.Limits, c.Resources.Limits)
				have.Requests = resized(have.Requests, c.Resources.Requests)
			}
			have.Requests = resized(have.Requests, c.AllocatedResources)
			r.Containers[c.Name] = have
		}
	}
	return r, found
}

// resized returns the amounts of the spec with CPU and memory, which can be resized, as the status has them.
func resized(spec, status v1.ResourceList) v1.ResourceList {
	if status == nil {
		return spec
	}
	spec = maps.Clone(spec)
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		amount, has := status[name]
		if _, wanted := spec[name]; has && wanted {
			spec[name] = amount
		}
	}
	return spec
}
