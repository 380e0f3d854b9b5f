package kubeapi

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"swiftlet/internal/kubeclient"
	"swiftlet/internal/require"
)

// CSIDrivers caches the cluster's CSIDriver objects.
type CSIDrivers struct{ *collection }

// NewCSIDrivers starts nothing; Run watches.
func NewCSIDrivers(client kubeclient.Interface) (*CSIDrivers, error) {
	if err := require.Set("new CSI driver lister", map[string]any{"client": client}); err != nil {
		return nil, err
	}
	api := client.CSIDrivers()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, opts)
		},
		WatchFuncWithContext: api.Watch,
	}
	return &CSIDrivers{newCollection("csidrivers", client, lw, &storagev1.CSIDriver{}, trimCSIDriver)}, nil
}

// Get returns one driver, or a NotFound error. It waits for the first list: before that, every
// driver would seem to be missing.
func (d *CSIDrivers) Get(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	select {
	case <-d.Synced():
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the list of CSI drivers: %w", ctx.Err())
	}
	obj, ok, err := d.GetByKey(name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, apierrors.NewNotFound(storagev1.Resource("csidrivers"), name)
	}
	return obj.(*storagev1.CSIDriver), nil
}

// OnChange adds a function that is called after each change. Call it before Run.
func (d *CSIDrivers) OnChange(f func()) { d.onChange = append(d.onChange, f) }

func trimCSIDriver(obj any) any {
	driver, ok := obj.(*storagev1.CSIDriver)
	if !ok {
		return obj
	}
	trimmed := *driver
	trimmed.ManagedFields = nil
	return &trimmed
}
