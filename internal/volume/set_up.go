package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"swiftlet/internal/volume/flexvolume"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/why"
)

// mountedVolume is a volume that is mounted.
type mountedVolume struct {
	spec   plugin.Spec
	kind   plugin.Plugin
	result plugin.Result
}

// setUpVolume runs all steps to mount one volume of a pod. Each step is idempotent.
func (v *Volumes) setUpVolume(ctx context.Context, p *v1.Pod, name string) (mountedVolume, error) {
	vol := findVolume(p, name)
	if vol == nil {
		return mountedVolume{}, setUpError(name, errors.New("the pod has no such volume"))
	}
	spec, err := v.resolve(ctx, p, vol)
	if err != nil {
		return mountedVolume{}, resolveFailure(name, err)
	}
	kind := v.kindFor(spec)
	if kind == nil {
		return mountedVolume{}, setUpError(spec.Name(), v.noPluginError(spec))
	}
	if err := v.checkAffinity(spec); err != nil {
		return mountedVolume{}, failed(reasonMount, operationName(spec)+".NodeAffinity check", spec.Name(), err)
	}
	r := plugin.Request{Spec: spec, Pod: p, PodDir: v.podDir(p.UID), Report: v.reportGroupChange(p), Clock: v.deps.Clock}
	if r.Label, err = v.mountLabel(ctx, kind, p, spec); err != nil {
		return mountedVolume{}, resolveFailure(name, err)
	}
	device, err := v.acquireDevice(ctx, kind, r)
	if err != nil {
		return mountedVolume{}, err
	}
	defer device.release()
	if err := v.waitForAttach(ctx, kind, &r, device); err != nil {
		return mountedVolume{}, err
	}
	if err := v.stage(ctx, kind, r, device); err != nil {
		return mountedVolume{}, err
	}
	result, err := v.publish(ctx, kind, r)
	if err != nil {
		return mountedVolume{}, err
	}
	v.markUsed(device, p.UID)
	return mountedVolume{spec, kind, result}, v.expand(ctx, kind, r, result, device)
}

// operationName is the name of the operation in messages.
func operationName(s plugin.Spec) string {
	if s.Block() {
		return "MapVolume"
	}
	return "MountVolume"
}

// kinds are all plugins, including the FlexVolume drivers that are installed now.
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

// noPluginError is the error for a volume without a plugin.
func (v *Volumes) noPluginError(spec plugin.Spec) error {
	err := why.Because(why.NoVolumePlugin, "", errors.New("no volume plugin matched"))
	if name := flexvolume.DriverName(spec); name != "" {
		// The installation of a driver is not reported.
		return plugin.RetryWithin(fmt.Errorf("%w: %w", err, v.drivers.MissingError(name)), driverRetry)
	}
	return err
}

// driverRetry is the longest delay before the FlexVolume driver is looked up again.
const driverRetry = 10 * time.Second

// checkAffinity rejects a volume that is not accessible from this node.
func (v *Volumes) checkAffinity(spec plugin.Spec) error {
	if spec.PV == nil || spec.PV.Spec.NodeAffinity == nil || spec.PV.Spec.NodeAffinity.Required == nil {
		return nil
	}
	if v.deps.Node == nil {
		return errors.New("no Node object to read labels from")
	}
	node, err := v.deps.Node()
	if err != nil {
		return err
	}
	labelled := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: node.Labels}} // a volume can select by nothing else
	matches, err := nodeaffinity.NewLazyErrorNodeSelector(spec.PV.Spec.NodeAffinity.Required).Match(labelled)
	if err == nil && !matches {
		err = why.Because(why.VolumeElsewhere, "PersistentVolume "+spec.PV.Name, errors.New("no matching NodeSelectorTerms"))
	}
	return err
}

// stage stages a device for all pods of the node.
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

// publish sets up the volume in the pod's directory.
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
	v.observeOperation(qualifiedPlugin(kind, r.Spec), operation, began, err)
	return result, err
}

// Retry retries all volumes that are not mounted and all devices that are not unstaged: what they wait
// for, such as a driver, may be available. It also rechecks whether attached volumes have to be.
func (v *Volumes) Retry() {
	v.runAsync(func() { v.recheckAttachable(v.lifetime) })
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.retrySignal)
	v.retrySignal = make(chan struct{})
	for _, pv := range v.pods {
		pv.retryUnmounted()
	}
}

// Refresh refreshes the mounted volumes of the plugin for which selected is true.
func (v *Volumes) Refresh(kind string, selected func(uid types.UID, s plugin.Spec) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for uid, pv := range v.pods {
		for name, state := range pv.volumes {
			if state.mounted && state.mountedVolume.kind.Name() == kind && selected(uid, state.mountedVolume.spec) {
				v.scheduleLocked(volumeKey{pod: uid, volume: name}, v.deps.Clock.Now())
			}
		}
	}
}

// groupAnnotation is the annotation of a PersistentVolume with a supplemental group for its pods.
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
