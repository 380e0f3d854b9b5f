// Package localpath provisions volumes as directories, for Kubernetes' controller that binds claims.
package localpath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	volumes "k8s.io/kubernetes/pkg/volume"
	"k8s.io/mount-utils"

	"swiftlet/internal/volume/safepath"
)

// Provisioner is what StorageClasses call it.
const Provisioner = "swiftlet.dev/local-path"

const (
	// parentMode keeps users of the host away from volumes, which every user of a pod may write to.
	parentMode os.FileMode = 0o700
	volumeMode os.FileMode = 0o777
)

// Plugin creates and deletes the directories of volumes below Dir.
type Plugin struct {
	volumePlugin
	Dir string
	// Mounts lists what is mounted.
	Mounts func() ([]mount.MountPoint, error)
}

var (
	_ volumes.ProvisionableVolumePlugin = (*Plugin)(nil)
	_ volumes.DeletableVolumePlugin     = (*Plugin)(nil)
)

// New returns a plugin for a directory, which need not exist.
func New(dir string) *Plugin { return &Plugin{Dir: dir, Mounts: mount.New("").List} }

// CanSupport implements volume.VolumePlugin. Volumes of other provisioners are not ours to delete.
func (p *Plugin) CanSupport(spec *volumes.Spec) bool {
	return spec.PersistentVolume != nil && spec.PersistentVolume.Annotations[volume.AnnDynamicallyProvisioned] == Provisioner
}

// NewProvisioner implements volume.ProvisionableVolumePlugin. It refuses what a directory cannot do.
func (p *Plugin) NewProvisioner(_ klog.Logger, options volumes.VolumeOptions) (volumes.Provisioner, error) {
	claim := options.PVC.Spec
	switch {
	case len(options.Parameters) > 0:
		return nil, errors.New("the StorageClass has parameters: there are none")
	case claim.VolumeMode != nil && *claim.VolumeMode != corev1.PersistentVolumeFilesystem:
		return nil, fmt.Errorf("volumeMode %s is not supported", *claim.VolumeMode)
	case claim.Selector != nil:
		return nil, errors.New("a selector cannot be met: the volume is new")
	case claim.DataSource != nil || claim.DataSourceRef != nil:
		return nil, errors.New("a data source is not supported: the volume is empty")
	}
	return &provisioner{plugin: p, options: options}, nil
}

type provisioner struct {
	plugin  *Plugin
	options volumes.VolumeOptions
}

// Provision implements volume.Provisioner. It may be called again for a volume.
func (v *provisioner) Provision(*corev1.Node, []corev1.TopologySelectorTerm) (*corev1.PersistentVolume, error) {
	name := v.options.PVName
	if err := v.plugin.makeDir(name); err != nil {
		return nil, fmt.Errorf("create volume %s: %w", name, err)
	}
	claim := v.options.PVC
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: v.options.PersistentVolumeReclaimPolicy,
			AccessModes:                   claim.Spec.AccessModes, // any: there is one node
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: filepath.Join(v.plugin.Dir, name)}},
			NodeAffinity:                  thisMachine,
		},
	}, nil
}

// thisMachine is what a local volume must say about its node. The data stays when the machine, and with it the
// node, gets another name.
var thisMachine = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
	MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpExists}},
}}}}

// makeDir creates the directory of a volume. The process' umask does not apply.
func (p *Plugin) makeDir(name string) error {
	if err := os.MkdirAll(p.Dir, parentMode); err != nil {
		return err
	}
	if err := os.Chmod(p.Dir, parentMode); err != nil {
		return err
	}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Mkdir(name, volumeMode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return root.Chmod(name, volumeMode)
}

// NewDeleter implements volume.DeletableVolumePlugin. Users may create and change the objects of volumes: only a
// directory that was created for this one is deleted.
func (p *Plugin) NewDeleter(_ klog.Logger, spec *volumes.Spec) (volumes.Deleter, error) {
	pv := spec.PersistentVolume
	if pv == nil || pv.Spec.Local == nil || pv.Spec.Local.Path != filepath.Join(p.Dir, pv.Name) || strings.Contains(pv.Name, "/") || pv.Name == "." || !filepath.IsLocal(pv.Name) {
		return nil, fmt.Errorf("delete volume: it is not the directory of that name in %s", p.Dir)
	}
	return &deleter{plugin: p, name: pv.Name}, nil
}

type deleter struct {
	volumes.MetricsNil
	plugin *Plugin
	name   string
}

// GetPath implements volume.Volume.
func (d *deleter) GetPath() string { return filepath.Join(d.plugin.Dir, d.name) }

// Delete implements volume.Deleter. What a pod has mounted in the directory is not deleted: it is retried.
func (d *deleter) Delete() error {
	mounts, err := d.plugin.Mounts()
	if err != nil {
		return fmt.Errorf("delete volume %s: %w", d.name, err)
	}
	if i := slices.IndexFunc(mounts, func(m mount.MountPoint) bool { return mount.PathWithinBase(m.Path, d.GetPath()) }); i >= 0 {
		return fmt.Errorf("delete volume %s: %s is mounted", d.name, mounts[i].Path)
	}
	// Pods may nest directories without limit, and mount something since the check: no mount is entered.
	if err := safepath.RemoveAll(d.GetPath()); err != nil {
		return fmt.Errorf("delete volume %s: %w", d.name, err)
	}
	return nil
}

// volumePlugin has the methods of volume.VolumePlugin that only a kubelet calls.
type volumePlugin struct{}

var errMounts = errors.New("volumes are mounted by the kubelet")

// Init implements volume.VolumePlugin.
func (volumePlugin) Init(volumes.VolumeHost) error { return nil }

// GetPluginName implements volume.VolumePlugin.
func (volumePlugin) GetPluginName() string { return Provisioner }

// GetVolumeName implements volume.VolumePlugin.
func (volumePlugin) GetVolumeName(spec *volumes.Spec) (string, error) { return spec.Name(), nil }

// RequiresRemount implements volume.VolumePlugin.
func (volumePlugin) RequiresRemount(*volumes.Spec) bool { return false }

// NewMounter implements volume.VolumePlugin.
func (volumePlugin) NewMounter(*volumes.Spec, *corev1.Pod) (volumes.Mounter, error) {
	return nil, errMounts
}

// NewUnmounter implements volume.VolumePlugin.
func (volumePlugin) NewUnmounter(string, types.UID) (volumes.Unmounter, error) { return nil, errMounts }

// ConstructVolumeSpec implements volume.VolumePlugin.
func (volumePlugin) ConstructVolumeSpec(string, string) (volumes.ReconstructedVolume, error) {
	return volumes.ReconstructedVolume{}, errMounts
}

// SupportsMountOption implements volume.VolumePlugin.
func (volumePlugin) SupportsMountOption() bool { return false }

// SupportsSELinuxContextMount implements volume.VolumePlugin.
func (volumePlugin) SupportsSELinuxContextMount(*volumes.Spec) (bool, error) { return false, nil }
