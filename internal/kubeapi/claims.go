package kubeapi

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/kubeclient"
	"swiftlet/internal/require"
)

// Claims reads PersistentVolumeClaims and their PersistentVolumes. The node authorizer allows a
// node to get those of its pods by name only, so there is no watch and no cache.
type Claims struct{ client kubeclient.Interface }

// NewClaims validates and starts nothing.
func NewClaims(client kubeclient.Interface) (*Claims, error) {
	if err := require.Set("new claim reader", map[string]any{"client": client}); err != nil {
		return nil, err
	}
	return &Claims{client}, nil
}

// Claim reads a PersistentVolumeClaim.
func (c *Claims) Claim(ctx context.Context, namespace, name string) (*v1.PersistentVolumeClaim, error) {
	return RetryForbidden(ctx, func() (*v1.PersistentVolumeClaim, error) {
		return c.client.PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// Volume reads a PersistentVolume.
func (c *Claims) Volume(ctx context.Context, name string) (*v1.PersistentVolume, error) {
	return RetryForbidden(ctx, func() (*v1.PersistentVolume, error) {
		return c.client.PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	})
}

// Secret reads a Secret that a volume refers to. It may be in another namespace than the pod.
func (c *Claims) Secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	return RetryForbidden(ctx, func() (*v1.Secret, error) {
		return c.client.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}
