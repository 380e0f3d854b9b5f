package kubeapi

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"swiftlet/internal/kubeclient"
	"swiftlet/internal/require"
)

// ResourceClaims reads the ResourceClaims of this node's pods, and lists and deletes the
// ResourceSlices of this node's DRA drivers.
type ResourceClaims struct {
	client   kubeclient.Interface
	nodeName string
}

// NewResourceClaims validates and starts nothing.
func NewResourceClaims(client kubeclient.Interface, nodeName string) (*ResourceClaims, error) {
	if err := require.Set("new resource claims", map[string]any{"client": client, "nodeName": nodeName}); err != nil {
		return nil, err
	}
	return &ResourceClaims{client: client, nodeName: nodeName}, nil
}

// Claim reads a claim from the API server.
func (c *ResourceClaims) Claim(ctx context.Context, namespace, name string) (*resourceapi.ResourceClaim, error) {
	return RetryForbidden(ctx, func() (*resourceapi.ResourceClaim, error) {
		return c.client.ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// Drivers lists the drivers that have ResourceSlices of this node.
func (c *ResourceClaims) Drivers(ctx context.Context) ([]string, error) {
	list, err := c.client.ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: c.selector("")})
	if err != nil {
		return nil, fmt.Errorf("list resource slices: %w", err)
	}
	var names []string
	for _, s := range list.Items {
		if !slices.Contains(names, s.Spec.Driver) {
			names = append(names, s.Spec.Driver)
		}
	}
	return names, nil
}

// DeleteSlices deletes a driver's ResourceSlices of this node.
func (c *ResourceClaims) DeleteSlices(ctx context.Context, driver string) error {
	err := c.client.ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: c.selector(driver)})
	if err != nil {
		return fmt.Errorf("delete resource slices: %w", err)
	}
	return nil
}

// selector matches the slices of this node, of one driver or of all.
func (c *ResourceClaims) selector(driver string) string {
	set := fields.Set{resourceapi.ResourceSliceSelectorNodeName: c.nodeName}
	if driver != "" {
		set[resourceapi.ResourceSliceSelectorDriver] = driver
	}
	return set.String()
}
