package csi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"swiftlet/internal/pod"
)

// nodeIDAnnotation has the node IDs that drivers report.
const nodeIDAnnotation = "csi.volume.kubernetes.io/nodeid"

// migrated are the in-tree plugins whose volumes CSI drivers mount. The scheduler and the attach
// controller look for them in the CSINode before they give the node such a volume.
var migrated = pod.MigratedVolumePlugins()

// writeRetry is the back-off of conflicting writes.
var writeRetry = wait.Backoff{Steps: 4, Duration: 10 * time.Millisecond, Factor: 5, Jitter: 0.1}

// withRetry retries a write with back-off.
func (p *Plugin) withRetry(ctx context.Context, write func(context.Context) error) error {
	p.node.Lock()
	defer p.node.Unlock()
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, writeRetry, func(ctx context.Context) (bool, error) {
		last = write(ctx)
		return last == nil, nil
	})
	if last != nil {
		return last
	}
	return err
}

// install writes the driver to the API server: its node ID and topology labels to the Node, its limit
// and topology keys to the CSINode.
func (p *Plugin) install(ctx context.Context, name string, info *csi.NodeGetInfoResponse) error {
	if info.GetNodeId() == "" {
		return errors.New("error adding CSI driver node info: driverNodeID must not be empty")
	}
	segments := info.GetAccessibleTopology().GetSegments()
	err := p.withRetry(ctx, func(ctx context.Context) error {
		return p.changeNode(ctx, segments, func(ids map[string]string) { ids[name] = info.GetNodeId() })
	})
	if err != nil {
		return fmt.Errorf("error updating Node object with CSI driver node info: %w", err)
	}
	return p.updateCSINodeDriver(ctx, name, info)
}

// updateCSINodeDriver writes the driver's info to the CSINode.
func (p *Plugin) updateCSINodeDriver(ctx context.Context, name string, info *csi.NodeGetInfoResponse) error {
	segments := info.GetAccessibleTopology().GetSegments()
	d := storagev1.CSINodeDriver{Name: name, NodeID: info.GetNodeId(), TopologyKeys: slices.Sorted(maps.Keys(segments))}
	if most := info.GetMaxVolumesPerNode(); most > 0 {
		count := int32(min(most, math.MaxInt32))
		d.Allocatable = &storagev1.VolumeNodeResources{Count: &count}
	}
	err := p.withRetry(ctx, func(ctx context.Context) error {
		return p.changeCSINode(ctx, func(drivers []storagev1.CSINodeDriver) []storagev1.CSINodeDriver {
			if i := slices.IndexFunc(drivers, func(known storagev1.CSINodeDriver) bool { return known.Name == name }); i >= 0 && equality.Semantic.DeepEqual(drivers[i], d) {
				return drivers
			}
			return append(without(drivers, name), d)
		})
	})
	if err != nil {
		return fmt.Errorf("error updating CSINode object with CSI driver node info: %w", err)
	}
	return nil
}

// uninstall undoes install. It keeps the labels: other drivers may have set the same.
func (p *Plugin) uninstall(ctx context.Context, name string) error {
	err := p.withRetry(ctx, func(ctx context.Context) error {
		return p.changeCSINode(ctx, func(drivers []storagev1.CSINodeDriver) []storagev1.CSINodeDriver { return without(drivers, name) })
	})
	if err != nil {
		return fmt.Errorf("error uninstalling CSI driver from CSINode object %w", err)
	}
	err = p.withRetry(ctx, func(ctx context.Context) error {
		return p.changeNode(ctx, nil, func(ids map[string]string) { delete(ids, name) })
	})
	if err != nil {
		return fmt.Errorf("error removing CSI driver node info from Node object %w", err)
	}
	return nil
}

// EnsureCSINode creates the CSINode if it is missing, before any driver is registered.
func (p *Plugin) EnsureCSINode(ctx context.Context) error {
	return p.withRetry(ctx, func(ctx context.Context) error {
		return p.changeCSINode(ctx, func(drivers []storagev1.CSINodeDriver) []storagev1.CSINodeDriver { return drivers })
	})
}

func without(drivers []storagev1.CSINodeDriver, name string) []storagev1.CSINodeDriver {
	return slices.DeleteFunc(slices.Clone(drivers), func(d storagev1.CSINodeDriver) bool { return d.Name == name })
}

// changeNode patches the labels and the node IDs of the Node.
func (p *Plugin) changeNode(ctx context.Context, labels map[string]string, change func(ids map[string]string)) error {
	api := p.deps.Client.Nodes()
	node, err := api.Get(ctx, p.cfg.NodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	patch := map[string]map[string]any{"annotations": {}, "labels": {}}
	for key, value := range labels {
		switch now, ok := node.Labels[key]; {
		case ok && now != value:
			return fmt.Errorf("detected topology value collision: driver reported %q:%q but existing label is %q:%q", key, value, key, now)
		case !ok:
			patch["labels"][key] = value
		}
	}
	before := node.Annotations[nodeIDAnnotation]
	after, err := changedIDs(before, change)
	if err != nil {
		return err
	}
	if after == "" && before != "" {
		patch["annotations"][nodeIDAnnotation] = nil
	} else if after != before {
		patch["annotations"][nodeIDAnnotation] = after
	}
	if len(patch["annotations"])+len(patch["labels"]) == 0 {
		return nil
	}
	body, err := json.Marshal(map[string]any{"metadata": patch})
	if err != nil {
		return err
	}
	_, err = api.Patch(ctx, p.cfg.NodeName, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	return err
}

// changedIDs returns the annotation after the change, "" for none.
func changedIDs(text string, change func(ids map[string]string)) (string, error) {
	ids := map[string]string{}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &ids); err != nil {
			return "", fmt.Errorf("failed to parse node's %q annotation value (%q) err=%w", nodeIDAnnotation, text, err)
		}
	}
	if ids == nil { // the annotation is "null"
		ids = map[string]string{}
	}
	change(ids)
	if len(ids) == 0 {
		return "", nil
	}
	after, err := json.Marshal(ids)
	return string(after), err
}

// changeCSINode updates the CSINode if it changes. It replaces the one of an earlier Node of this
// name.
func (p *Plugin) changeCSINode(ctx context.Context, change func([]storagev1.CSINodeDriver) []storagev1.CSINodeDriver) error {
	node, err := p.deps.Client.Nodes().Get(ctx, p.cfg.NodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	api := p.deps.Client.CSINodes()
	now, err := api.Get(ctx, p.cfg.NodeName, metav1.GetOptions{})
	if err == nil && !owns(node, now) {
		if err := api.Delete(ctx, p.cfg.NodeName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete CSINode of an earlier node: %w", err)
		}
		return p.createCSINode(ctx, node, change)
	}
	if apierrors.IsNotFound(err) {
		return p.createCSINode(ctx, node, change)
	}
	if err != nil {
		return err
	}
	after := now.DeepCopy()
	after.Spec.Drivers = change(now.Spec.Drivers)
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1.MigratedPluginsAnnotationKey, strings.Join(migrated, ","))
	if equality.Semantic.DeepEqual(now, after) {
		return nil
	}
	_, err = api.Update(ctx, after, metav1.UpdateOptions{})
	return err
}

func (p *Plugin) createCSINode(ctx context.Context, node *v1.Node, change func([]storagev1.CSINodeDriver) []storagev1.CSINodeDriver) error {
	made := &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{
			Name:            node.Name,
			Annotations:     map[string]string{v1.MigratedPluginsAnnotationKey: strings.Join(migrated, ",")},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
		},
		Spec: storagev1.CSINodeSpec{Drivers: change([]storagev1.CSINodeDriver{})},
	}
	_, err := p.deps.Client.CSINodes().Create(ctx, made, metav1.CreateOptions{})
	return err
}

func owns(node *v1.Node, c *storagev1.CSINode) bool {
	return slices.ContainsFunc(c.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "Node" && o.Name == node.Name && o.UID == node.UID
	})
}
