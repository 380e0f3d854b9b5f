package controllers

import (
	"context"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/volume/ephemeral"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/controller/volume/vacprotection"
	"k8s.io/kubernetes/pkg/volume"

	"swiftlet/apiserver/internal/localpath"
)

// claimSync is how often failed operations on volumes are tried again, as with kube-controller-manager.
const claimSync = 15 * time.Second

// volumeBinder returns the controller that binds claims to volumes, and that creates and deletes those of the
// local-path StorageClass.
func (w *Workloads) volumeBinder(ctx context.Context) (runner, error) {
	core := w.shared.Core().V1()
	c, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient: w.client, SyncPeriod: claimSync, VolumePlugins: []volume.VolumePlugin{localpath.New(w.cfg.Volumes)},
		VolumeInformer: core.PersistentVolumes(), ClaimInformer: core.PersistentVolumeClaims(), ClassInformer: w.shared.Storage().V1().StorageClasses(),
		PodInformer: core.Pods(), NodeInformer: core.Nodes(), EnableDynamicProvisioning: true,
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, _ int) { c.Run(ctx) }, nil
}

// attributesProtection returns the controller that lets unused VolumeAttributesClasses be deleted, which have a
// finalizer from their creation on.
func (w *Workloads) attributesProtection(ctx context.Context) (*vacprotection.Controller, error) {
	core := w.shared.Core().V1()
	return vacprotection.NewVACProtectionController(klog.FromContext(ctx), w.client, core.PersistentVolumeClaims(), core.PersistentVolumes(),
		w.shared.Storage().V1().VolumeAttributesClasses())
}

// ephemeralVolumes returns the controller that creates the claims of pods with ephemeral volumes.
func (w *Workloads) ephemeralVolumes(ctx context.Context) (runner, error) {
	return runs(ephemeral.NewController(ctx, w.client, w.shared.Core().V1().Pods(), w.shared.Core().V1().PersistentVolumeClaims()))
}
