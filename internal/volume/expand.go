package volume

import (
	"context"

	"k8s.io/apimachinery/pkg/api/resource"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/plugin"
)

// Grown is told that a claim's volume now has all of size; the claim's status shows it.
type Grown interface {
	Grown(ctx context.Context, c *v1.PersistentVolumeClaim, size resource.Quantity) error
}

// expand has a volume that was made larger use all of its size.
func (v *Volumes) expand(ctx context.Context, kind plugin.Plugin, r plugin.Request, at plugin.Result) error {
	expander, ok := kind.(plugin.Expander)
	if !ok || r.PVC == nil || r.ClaimReadOnly {
		return nil
	}
	want, has := r.PV.Spec.Capacity.Storage(), r.PVC.Status.Capacity.Storage()
	if want.Cmp(*has) <= 0 {
		return nil
	}
	if err := expander.Expand(ctx, r, at, *want); err != nil {
		return failed(reasonExpand, stepOf(r.Spec)+".NodeExpandVolume", r.Name(), err)
	}
	if grown, ok := v.deps.Claims.(Grown); ok {
		if err := grown.Grown(ctx, r.PVC, *want); err != nil {
			return failed(reasonExpand, stepOf(r.Spec)+".NodeExpandVolume", r.Name(), err)
		}
	}
	v.deps.Events.Eventf(pod.EventRef(r.Pod, ""), v1.EventTypeNormal, "FileSystemResizeSuccessful",
		"%s.NodeExpandVolume succeeded for volume %q ", stepOf(r.Spec), r.Name())
	return nil
}
