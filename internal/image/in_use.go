package image

import (
	"cmp"
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
)

// Containers lists the runtime's containers; cri.Client is one.
type Containers interface {
	ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error)
}

// InUse returns a function that lists the images in use: those of all containers in the
// runtime, including exited ones and those of other clients, and those that pods mount.
func InUse(containers Containers, observed func() []pod.Observed) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		list, err := containers.ListContainers(ctx, nil)
		if err != nil {
			return nil, err
		}
		var refs []string
		for _, c := range list {
			// Runtimes older than CRI 1.30 have only the reference.
			refs = append(refs, cmp.Or(c.GetImageId(), c.GetImageRef()))
		}
		for _, o := range observed() {
			for _, c := range o.Containers {
				for _, m := range c.Mounts {
					refs = append(refs, m.Image)
				}
			}
		}
		return refs, nil
	}
}
