package volume

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/plugin"
)

// Growth shows in a claim's status how far the growth of its volume is.
type Growth interface {
	// Growing says that this node is at it, and returns the claim as it is then.
	Growing(ctx context.Context, c *v1.PersistentVolumeClaim) (*v1.PersistentVolumeClaim, error)
	// Grown says that the volume now has all of size.
	Grown(ctx context.Context, c *v1.PersistentVolumeClaim, size resource.Quantity) error
	// NotGrown says why it has not. What is infeasible is left to the controller.
	NotGrown(ctx context.Context, c *v1.PersistentVolumeClaim, why error, infeasible bool) error
}

// expand has a volume that was made larger use all of its size. The caller has the device's
// turn.
func (v *Volumes) expand(ctx context.Context, kind plugin.Plugin, r plugin.Request, at plugin.Result, d *device) error {
	expander, ok := kind.(plugin.Expander)
	if !ok || r.PVC == nil || r.ClaimReadOnly {
		return nil
	}
	want := r.PV.Spec.Capacity.Storage()
	if want.Cmp(v.sizeHere(d, *r.PVC.Status.Capacity.Storage())) <= 0 || !v.mayGrow(d, r.PVC, *want) {
		return nil
	}
	err := v.showGrowing(ctx, &r)
	if err == nil {
		if err = expander.Expand(ctx, r, at, *want); err != nil {
			v.showNotGrown(ctx, r, d, err)
		}
	}
	if errors.Is(err, plugin.ErrInUse) {
		v.markFixed(d)
		v.deps.Log.Warn("a volume does not grow while it is in use", "pod", r.Pod.UID, "volume", r.Name(), "err", err)
		return nil
	}
	if err == nil {
		err = v.showGrown(ctx, r, *want)
	}
	if err != nil {
		return failed(reasonExpand, stepOf(r.Spec)+".NodeExpandVolume", r.Name(), err)
	}
	v.markGrown(d, *want)
	for _, about := range []*v1.ObjectReference{pod.EventRef(r.Pod, ""), claimRef(r.PVC)} {
		v.deps.Events.Eventf(about, v1.EventTypeNormal, "FileSystemResizeSuccessful",
			"%s.NodeExpandVolume succeeded for volume %q ", stepOf(r.Spec), r.Name())
	}
	return nil
}

func claimRef(c *v1.PersistentVolumeClaim) *v1.ObjectReference {
	return &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1",
		Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion}
}

// growthOf is how far a claim's growth is by the word of its controller; told is false for
// one of old, which does not say.
func growthOf(c *v1.PersistentVolumeClaim) (state v1.ClaimResourceStatus, told bool) {
	state = c.Status.AllocatedResourceStatuses[v1.ResourceStorage]
	return state, state != "" || c.Status.AllocatedResources != nil
}

// mayGrow reports whether it is this node's turn to have the volume grow to that size.
func (v *Volumes) mayGrow(d *device, c *v1.PersistentVolumeClaim, want resource.Quantity) bool {
	v.mu.Lock()
	fixed := d.fixed
	v.mu.Unlock()
	if fixed {
		return false
	}
	switch state, told := growthOf(c); state {
	case v1.PersistentVolumeClaimNodeResizePending, v1.PersistentVolumeClaimNodeResizeInProgress:
		return true
	case "":
		// A controller that has nothing to say is not done, unless another node was first.
		return !told || c.Status.Capacity.Storage().Cmp(want) >= 0
	default:
		return false // infeasible, or the controller's own part is not done
	}
}

// showGrowing tells a controller that waits for the node; the claim is another one then.
func (v *Volumes) showGrowing(ctx context.Context, r *plugin.Request) error {
	growth, ok := v.deps.Claims.(Growth)
	if state, _ := growthOf(r.PVC); !ok || state != v1.PersistentVolumeClaimNodeResizePending {
		return nil
	}
	claim, err := growth.Growing(ctx, r.PVC)
	if err == nil {
		r.PVC = claim
	}
	return err
}

// showNotGrown tells the controller of a failure that a further try will hardly change.
func (v *Volumes) showNotGrown(ctx context.Context, r plugin.Request, d *device, why error) {
	growth, ok := v.deps.Claims.(Growth)
	_, told := growthOf(r.PVC)
	if !ok || !told || errors.Is(why, plugin.ErrUncertain) {
		return
	}
	v.mu.Lock()
	before := d.ungrown
	d.ungrown = true
	v.mu.Unlock()
	// Failed again, and the owner has asked for another size since: only the controller can
	// settle it, and must know that this node is not at it.
	asked := r.PVC.Spec.Resources.Requests.Storage().Cmp(*r.PV.Spec.Capacity.Storage()) != 0
	infeasible := errors.Is(why, plugin.ErrInfeasible) || (before && asked)
	if err := growth.NotGrown(ctx, r.PVC, why, infeasible); err != nil {
		v.deps.Log.Warn("the failure of a volume to grow is not shown", "pod", r.Pod.UID, "volume", r.Name(), "err", err)
	}
}

// showGrown shows the new size, unless another node has done so.
func (v *Volumes) showGrown(ctx context.Context, r plugin.Request, size resource.Quantity) error {
	growth, ok := v.deps.Claims.(Growth)
	state, _ := growthOf(r.PVC)
	if !ok || (state == "" && r.PVC.Status.Capacity.Storage().Cmp(size) >= 0) {
		return nil
	}
	return growth.Grown(ctx, r.PVC, size)
}

// sizeHere is the size that the volume is known to have on this node. The claim shows what
// it has on the node that was first to have it grow, which need not be this one; so it
// counts only when the volume comes up.
func (v *Volumes) sizeHere(d *device, shown resource.Quantity) resource.Quantity {
	v.mu.Lock()
	defer v.mu.Unlock()
	if d.size == nil {
		d.size = &shown
	}
	return *d.size
}

func (v *Volumes) markGrown(d *device, size resource.Quantity) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d.size, d.ungrown = &size, false
}

// markFixed ends the tries until the volume is not up any more.
func (v *Volumes) markFixed(d *device) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d.fixed = true
}
