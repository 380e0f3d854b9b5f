package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	storage "k8s.io/component-helpers/storage/volume"

	"swiftlet/internal/volume/flexvolume"
	"swiftlet/internal/volume/plugin"
)

// up is a volume that is up.
type up struct {
	spec   plugin.Spec
	kind   plugin.Plugin
	result plugin.Result
}

// bringUp takes one volume of a pod through all its steps. Each of them leaves alone what
// is already done.
func (v *Volumes) bringUp(ctx context.Context, p *v1.Pod, name string) (up, error) {
	vol := findVolume(p, name)
	if vol == nil {
		return up{}, setUpError(name, errors.New("the pod has no such volume"))
	}
	spec, err := v.resolve(ctx, p, vol)
	if err != nil {
		return up{}, unresolved(name, err)
	}
	kind := v.kindFor(spec)
	if kind == nil {
		return up{}, setUpError(spec.Name(), v.noKind(spec))
	}
	if err := v.checkAffinity(spec); err != nil {
		return up{}, failed(reasonMount, stepOf(spec)+".NodeAffinity check", spec.Name(), err)
	}
	r := plugin.Request{Spec: spec, Pod: p, PodDir: v.podDir(p.UID)}
	if r.Label, err = v.mountLabel(ctx, kind, p, spec); err != nil {
		return up{}, unresolved(name, err)
	}
	device, err := v.share(ctx, kind, r)
	if err != nil {
		return up{}, err
	}
	defer device.release()
	if err := v.awaitAttached(ctx, kind, &r, device); err != nil {
		return up{}, err
	}
	if err := v.stage(ctx, kind, r, device); err != nil {
		return up{}, err
	}
	result, err := v.publish(ctx, kind, r)
	if err != nil {
		return up{}, err
	}
	v.markUsed(device, p.UID)
	return up{spec, kind, result}, v.expand(ctx, kind, r, result, device)
}

// stepOf is how messages call the bringing up of a volume.
func stepOf(s plugin.Spec) string {
	if s.Block() {
		return "MapVolume"
	}
	return "MountVolume"
}

// kinds are all kinds of volumes, with those of the drivers that the node has now.
func (v *Volumes) kinds() []plugin.Plugin {
	return slices.Concat(v.plugins, v.drivers.Plugins())
}

func (v *Volumes) kindFor(spec plugin.Spec) plugin.Plugin {
	handles := func(k plugin.Plugin) bool { return k.Handles(spec) }
	if i := slices.IndexFunc(v.plugins, handles); i >= 0 {
		return v.plugins[i]
	}
	drivers := v.drivers.Plugins()
	if i := slices.IndexFunc(drivers, handles); i >= 0 {
		return drivers[i]
	}
	return nil
}

// noKind says why a volume is of no kind that the node knows.
func (v *Volumes) noKind(spec plugin.Spec) error {
	err := errors.New("no volume plugin matched")
	if name := flexvolume.DriverName(spec); name != "" {
		// Nobody tells when a driver is put there.
		return plugin.RetryWithin(fmt.Errorf("%w: %w", err, v.drivers.MissingError(name)), driverWait)
	}
	return err
}

// driverWait is the longest pause before a driver is looked for again.
const driverWait = 10 * time.Second

// checkAffinity refuses a volume that can be reached from other nodes only.
func (v *Volumes) checkAffinity(spec plugin.Spec) error {
	if spec.PV == nil || spec.PV.Spec.NodeAffinity == nil {
		return nil
	}
	if v.deps.Node == nil {
		return errors.New("the node's labels are not known")
	}
	node, err := v.deps.Node()
	if err != nil {
		return err
	}
	return storage.CheckNodeAffinity(spec.PV, node.Labels)
}

// stage makes ready what the pods of the node share.
func (v *Volumes) stage(ctx context.Context, kind plugin.Plugin, r plugin.Request, d *device) error {
	stager, ok := kind.(plugin.Stager)
	if !ok || d == nil || !d.stageable || v.isStaged(d) {
		return nil
	}
	if err := stager.Stage(ctx, r); err != nil {
		if r.Block() {
			return failed(reasonMap, "MapVolume.SetUpDevice", r.Name(), err)
		}
		return failed(reasonMount, "MountVolume.MountDevice", r.Name(), err)
	}
	v.markStaged(d)
	return nil
}

// publish makes the volume appear in the pod's directory.
func (v *Volumes) publish(ctx context.Context, kind plugin.Plugin, r plugin.Request) (plugin.Result, error) {
	if err := v.makePodDirs(r.Pod.UID); err != nil {
		return plugin.Result{}, setUpError(r.Name(), err)
	}
	began, operation := v.deps.Clock.Now(), OperationMount
	var result plugin.Result
	var err error
	if r.Block() {
		operation = OperationMap
		result, err = v.mapBlock(ctx, kind, r)
	} else if result, err = kind.SetUp(ctx, r); err != nil {
		err = setUpError(r.Name(), err)
	}
	v.measure(qualifiedKind(kind, r.Spec), operation, began, err)
	return result, err
}

// Retry has every volume that is not up, or is still staged for nobody, tried again now:
// what it waits for, such as its driver, may be there. One that is attached may no longer
// have to be.
func (v *Volumes) Retry() {
	v.begin(func() { v.reviewAttached(v.life) })
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.retried)
	v.retried = make(chan struct{})
	for _, pv := range v.pods {
		pv.wakeWaiting()
	}
}

// Refresh has the volumes of the kind that are up, and are chosen, brought up to date now.
func (v *Volumes) Refresh(kind string, chosen func(uid types.UID, s plugin.Spec) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for uid, pv := range v.pods {
		for name, state := range pv.volumes {
			if state.mounted && state.up.kind.Name() == kind && chosen(uid, state.up.spec) {
				v.scheduleLocked(volumeKey{pod: uid, volume: name}, v.deps.Clock.Now())
			}
		}
	}
}

// groupAnnotation names a group that processes need to use a PersistentVolume.
const groupAnnotation = "pv.beta.kubernetes.io/gid"

func volumeGroup(pv *v1.PersistentVolume) *int64 {
	if pv == nil {
		return nil
	}
	id, err := strconv.ParseInt(pv.Annotations[groupAnnotation], 10, 64)
	if err != nil || id < 0 {
		return nil
	}
	return &id
}
