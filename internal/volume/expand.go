package volume

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/pod"
	"swiftlet/internal/volume/plugin"
)

var _ ExpansionReporter = (*kubeapi.Claims)(nil)

// ExpansionReporter updates the resize status of a claim.
type ExpansionReporter interface {
	// MarkResizeInProgress sets the status to NodeResizeInProgress and returns the updated claim.
	MarkResizeInProgress(ctx context.Context, c *v1.PersistentVolumeClaim) (*v1.PersistentVolumeClaim, error)
	// MarkResized sets the capacity to size.
	MarkResized(ctx context.Context, c *v1.PersistentVolumeClaim, size resource.Quantity) error
	// MarkResizeFailed records the error. An infeasible resize is left to the controller.
	MarkResizeFailed(ctx context.Context, c *v1.PersistentVolumeClaim, why error, infeasible bool) error
}

// expand expands a volume whose PersistentVolume has a larger capacity. The caller has the device
// locked.
func (v *Volumes) expand(ctx context.Context, kind plugin.Plugin, r plugin.Request, at plugin.Result, d *device) error {
	expander, ok := kind.(plugin.Expander)
	if !ok || r.PVC == nil || r.ClaimReadOnly {
		return nil
	}
	want := r.PV.Spec.Capacity.Storage()
	if want.Cmp(v.nodeSize(d, *r.PVC.Status.Capacity.Storage())) <= 0 || !v.mayExpand(d, r.PVC, *want) {
		return nil
	}
	err := v.reportExpanding(ctx, &r)
	if err == nil {
		if err = expander.Expand(ctx, r, at, *want); err != nil {
			v.reportExpandFailure(ctx, r, d, err)
		}
	}
	if errors.Is(err, plugin.ErrInUse) {
		v.disableOnlineExpansion(d)
		v.deps.Log.Warn("expand volume: not possible while in use", "podUID", r.Pod.UID, "volume", r.Name(), "err", err)
		return nil
	}
	if err == nil {
		err = v.reportExpanded(ctx, r, *want)
	}
	if err != nil {
		return failed(reasonExpand, operationName(r.Spec)+".NodeExpandVolume", r.Name(), err)
	}
	v.setNodeSize(d, *want)
	for _, about := range []*v1.ObjectReference{pod.EventRef(r.Pod, ""), claimRef(r.PVC)} {
		v.deps.Events.Eventf(about, v1.EventTypeNormal, "FileSystemResizeSuccessful",
			"%s.NodeExpandVolume succeeded for volume %q ", operationName(r.Spec), r.Name())
	}
	return nil
}

func claimRef(c *v1.PersistentVolumeClaim) *v1.ObjectReference {
	return &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1",
		Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion}
}

// resizeStatus is the resize status of a claim; reported is false if the controller is too old to set
// one.
func resizeStatus(c *v1.PersistentVolumeClaim) (state v1.ClaimResourceStatus, reported bool) {
	state = c.Status.AllocatedResourceStatuses[v1.ResourceStorage]
	return state, state != "" || c.Status.AllocatedResources != nil
}

// mayExpand reports whether this node may expand the volume to that size now.
func (v *Volumes) mayExpand(d *device, c *v1.PersistentVolumeClaim, want resource.Quantity) bool {
	v.mu.Lock()
	noOnlineExpansion := d.noOnlineExpansion
	v.mu.Unlock()
	if noOnlineExpansion {
		return false
	}
	switch state, reported := resizeStatus(c); state {
	case v1.PersistentVolumeClaimNodeResizePending, v1.PersistentVolumeClaimNodeResizeInProgress:
		return true
	case "":
		// A controller with an empty status is not done, unless another node was first.
		return !reported || c.Status.Capacity.Storage().Cmp(want) >= 0
	default:
		return false // infeasible, or the controller is not done
	}
}

// reportExpanding sets the status of a claim that waits for the node, and updates r.PVC.
func (v *Volumes) reportExpanding(ctx context.Context, r *plugin.Request) error {
	reporter, ok := v.deps.Claims.(ExpansionReporter)
	if state, _ := resizeStatus(r.PVC); !ok || state != v1.PersistentVolumeClaimNodeResizePending {
		return nil
	}
	claim, err := reporter.MarkResizeInProgress(ctx, r.PVC)
	if err == nil {
		r.PVC = claim
	}
	return err
}

// reportExpandFailure records a failure that a retry will probably not fix.
func (v *Volumes) reportExpandFailure(ctx context.Context, r plugin.Request, d *device, why error) {
	reporter, ok := v.deps.Claims.(ExpansionReporter)
	_, reported := resizeStatus(r.PVC)
	if !ok || !reported || errors.Is(why, plugin.ErrUncertain) {
		return
	}
	v.mu.Lock()
	before := d.expansionFailed
	d.expansionFailed = true
	v.mu.Unlock()
	// Failed again, and the requested size has changed since: only the controller can handle that,
	// and must know that this node has stopped.
	resized := r.PVC.Spec.Resources.Requests.Storage().Cmp(*r.PV.Spec.Capacity.Storage()) != 0
	infeasible := errors.Is(why, plugin.ErrInfeasible) || (before && resized)
	if err := reporter.MarkResizeFailed(ctx, r.PVC, why, infeasible); err != nil {
		v.deps.Log.Warn("expand volume: failed to update claim status", "podUID", r.Pod.UID, "volume", r.Name(), "err", err)
	}
}

// reportExpanded sets the new capacity, unless another node has.
func (v *Volumes) reportExpanded(ctx context.Context, r plugin.Request, size resource.Quantity) error {
	reporter, ok := v.deps.Claims.(ExpansionReporter)
	state, _ := resizeStatus(r.PVC)
	if !ok || (state == "" && r.PVC.Status.Capacity.Storage().Cmp(size) >= 0) {
		return nil
	}
	return reporter.MarkResized(ctx, r.PVC, size)
}

// nodeSize is the size of the volume on this node. The claim has the size on the node that expanded it
// first, which may be another one, so shown is used only when the volume is mounted.
func (v *Volumes) nodeSize(d *device, shown resource.Quantity) resource.Quantity {
	v.mu.Lock()
	defer v.mu.Unlock()
	if d.size == nil {
		d.size = &shown
	}
	return *d.size
}

func (v *Volumes) setNodeSize(d *device, size resource.Quantity) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d.size, d.expansionFailed = &size, false
}

// disableOnlineExpansion stops the attempts until the volume is unmounted.
func (v *Volumes) disableOnlineExpansion(d *device) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d.noOnlineExpansion = true
}
