package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// resizeConditions are the conditions that a finished resize removes from a claim.
var resizeConditions = []v1.PersistentVolumeClaimConditionType{
	v1.PersistentVolumeClaimResizing, v1.PersistentVolumeClaimFileSystemResizePending,
	v1.PersistentVolumeClaimControllerResizeError, v1.PersistentVolumeClaimNodeResizeError,
}

// MarkResizeInProgress records in the claim's status that this node expands the volume.
func (c *Claims) MarkResizeInProgress(ctx context.Context, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolumeClaim, error) {
	return c.patch(ctx, claim, types.StrategicMergePatchType, claim.ResourceVersion, map[string]any{
		"allocatedResourceStatuses": map[v1.ResourceName]any{v1.ResourceStorage: v1.PersistentVolumeClaimNodeResizeInProgress},
	})
}

// MarkResized records in the claim's status the volume's new size, and that the resize is finished.
func (c *Claims) MarkResized(ctx context.Context, claim *v1.PersistentVolumeClaim, size resource.Quantity) error {
	conditions := slices.DeleteFunc(slices.Clone(claim.Status.Conditions), func(c v1.PersistentVolumeClaimCondition) bool {
		return slices.Contains(resizeConditions, c.Type)
	})
	if conditions == nil {
		conditions = []v1.PersistentVolumeClaimCondition{}
	}
	// A merge patch replaces the whole list, so the claim must still have the version that was read.
	_, err := c.patch(ctx, claim, types.MergePatchType, claim.ResourceVersion, map[string]any{
		"capacity":                  map[v1.ResourceName]any{v1.ResourceStorage: size},
		"conditions":                conditions,
		"allocatedResourceStatuses": map[v1.ResourceName]any{v1.ResourceStorage: nil},
	})
	return err
}

// MarkResizeFailed records in the claim's status why the expansion failed. An infeasible one is not
// retried until the controller has chosen another size.
func (c *Claims) MarkResizeFailed(ctx context.Context, claim *v1.PersistentVolumeClaim, cause error, infeasible bool) error {
	status := map[string]any{}
	if infeasible {
		status["allocatedResourceStatuses"] = map[v1.ResourceName]any{v1.ResourceStorage: v1.PersistentVolumeClaimNodeResizeInfeasible}
	}
	recorded := slices.ContainsFunc(claim.Status.Conditions, func(c v1.PersistentVolumeClaimCondition) bool {
		return c.Type == v1.PersistentVolumeClaimNodeResizeError && c.Status == v1.ConditionTrue
	})
	if !recorded {
		status["conditions"] = []v1.PersistentVolumeClaimCondition{{
			Type: v1.PersistentVolumeClaimNodeResizeError, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now(),
			Message: fmt.Sprintf("failed to expand pvc with %v", cause),
		}}
	}
	if len(status) == 0 {
		return nil
	}
	_, err := c.patch(ctx, claim, types.StrategicMergePatchType, "", status)
	return err
}

// patch patches the claim's status; if version is set, only while the claim has that version.
func (c *Claims) patch(ctx context.Context, claim *v1.PersistentVolumeClaim, kind types.PatchType, version string, status map[string]any) (*v1.PersistentVolumeClaim, error) {
	meta := map[string]any{"uid": claim.UID}
	if version != "" {
		meta["resourceVersion"] = version
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta, "status": status})
	if err != nil {
		return nil, fmt.Errorf("encode status patch of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	got, err := c.client.PersistentVolumeClaims(claim.Namespace).
		Patch(ctx, claim.Name, kind, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return nil, fmt.Errorf("patch status of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return got, nil
}
