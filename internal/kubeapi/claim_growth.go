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

// growthConditions are those of a claim that end when its volume has grown.
var growthConditions = []v1.PersistentVolumeClaimConditionType{
	v1.PersistentVolumeClaimResizing, v1.PersistentVolumeClaimFileSystemResizePending,
	v1.PersistentVolumeClaimControllerResizeError, v1.PersistentVolumeClaimNodeResizeError,
}

// Growing shows in the claim's status that a node is at work on its size.
func (c *Claims) Growing(ctx context.Context, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolumeClaim, error) {
	return c.patch(ctx, claim, types.StrategicMergePatchType, claim.ResourceVersion, map[string]any{
		"allocatedResourceStatuses": map[v1.ResourceName]any{v1.ResourceStorage: v1.PersistentVolumeClaimNodeResizeInProgress},
	})
}

// Grown shows in the claim's status that its volume now has all of size, and that no work
// on its size is left.
func (c *Claims) Grown(ctx context.Context, claim *v1.PersistentVolumeClaim, size resource.Quantity) error {
	left := slices.DeleteFunc(slices.Clone(claim.Status.Conditions), func(c v1.PersistentVolumeClaimCondition) bool {
		return slices.Contains(growthConditions, c.Type)
	})
	if left == nil {
		left = []v1.PersistentVolumeClaimCondition{}
	}
	// A list is replaced as a whole, so the claim must still be the one that was read.
	_, err := c.patch(ctx, claim, types.MergePatchType, claim.ResourceVersion, map[string]any{
		"capacity":                  map[v1.ResourceName]any{v1.ResourceStorage: size},
		"conditions":                left,
		"allocatedResourceStatuses": map[v1.ResourceName]any{v1.ResourceStorage: nil},
	})
	return err
}

// NotGrown shows in the claim's status why its volume has not grown. That it is infeasible
// is for the controller, which then may settle for another size; no node tries again before.
func (c *Claims) NotGrown(ctx context.Context, claim *v1.PersistentVolumeClaim, why error, infeasible bool) error {
	status := map[string]any{}
	if infeasible {
		status["allocatedResourceStatuses"] = map[v1.ResourceName]any{v1.ResourceStorage: v1.PersistentVolumeClaimNodeResizeInfeasible}
	}
	shown := slices.ContainsFunc(claim.Status.Conditions, func(c v1.PersistentVolumeClaimCondition) bool {
		return c.Type == v1.PersistentVolumeClaimNodeResizeError && c.Status == v1.ConditionTrue
	})
	if !shown {
		status["conditions"] = []v1.PersistentVolumeClaimCondition{{
			Type: v1.PersistentVolumeClaimNodeResizeError, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now(),
			Message: fmt.Sprintf("failed to expand pvc with %v", why),
		}}
	}
	if len(status) == 0 {
		return nil
	}
	_, err := c.patch(ctx, claim, types.StrategicMergePatchType, "", status)
	return err
}

// patch changes the claim's status, with a version only if it still has that one.
func (c *Claims) patch(ctx context.Context, claim *v1.PersistentVolumeClaim, kind types.PatchType, version string, status map[string]any) (*v1.PersistentVolumeClaim, error) {
	meta := map[string]any{"uid": claim.UID}
	if version != "" {
		meta["resourceVersion"] = version
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta, "status": status})
	if err != nil {
		return nil, fmt.Errorf("describe the size of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	got, err := c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).
		Patch(ctx, claim.Name, kind, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return nil, fmt.Errorf("show the size of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return got, nil
}
