package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Claims reads claims and the volumes behind them. A node may get those of its pods, one
// by one, and nothing else: there is no watch and so nothing to keep.
type Claims struct{ client kubernetes.Interface }

// NewClaims needs a client.
func NewClaims(client kubernetes.Interface) (*Claims, error) {
	if client == nil {
		return nil, errors.New("make claim reader: a client is needed")
	}
	return &Claims{client}, nil
}

// Claim reads a claim.
func (c *Claims) Claim(ctx context.Context, namespace, name string) (*v1.PersistentVolumeClaim, error) {
	return c.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Volume reads a volume.
func (c *Claims) Volume(ctx context.Context, name string) (*v1.PersistentVolume, error) {
	return c.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
}

// Secret reads a Secret that a volume refers to, which need not be in its pod's namespace.
func (c *Claims) Secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	return c.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Grown shows in the claim's status that its volume now has all of size, and that no work
// on its size is left.
func (c *Claims) Grown(ctx context.Context, claim *v1.PersistentVolumeClaim, size resource.Quantity) error {
	left := slices.DeleteFunc(slices.Clone(claim.Status.Conditions), func(c v1.PersistentVolumeClaimCondition) bool {
		return c.Type == v1.PersistentVolumeClaimResizing || c.Type == v1.PersistentVolumeClaimFileSystemResizePending
	})
	if left == nil {
		left = []v1.PersistentVolumeClaimCondition{}
	}
	patch, err := json.Marshal(map[string]any{
		// A list is replaced as a whole, so the claim must still be the one that was read.
		"metadata": map[string]any{"uid": claim.UID, "resourceVersion": claim.ResourceVersion},
		"status": map[string]any{
			"capacity":                  map[v1.ResourceName]any{v1.ResourceStorage: size},
			"conditions":                left,
			"allocatedResourceStatuses": map[v1.ResourceName]any{v1.ResourceStorage: nil},
		},
	})
	if err != nil {
		return fmt.Errorf("describe the new size of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	_, err = c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).
		Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("show the new size of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}
