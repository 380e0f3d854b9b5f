package kubeapi

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	return Granted(ctx, func() (*v1.PersistentVolumeClaim, error) {
		return c.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// Volume reads a volume.
func (c *Claims) Volume(ctx context.Context, name string) (*v1.PersistentVolume, error) {
	return Granted(ctx, func() (*v1.PersistentVolume, error) {
		return c.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	})
}

// Secret reads a Secret that a volume refers to, which need not be in its pod's namespace.
func (c *Claims) Secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	return Granted(ctx, func() (*v1.Secret, error) {
		return c.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}
