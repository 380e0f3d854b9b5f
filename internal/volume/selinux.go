package volume

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/plugin"
)

// Labels derives the SELinux label of files; "" if unknown.
type Labels interface {
	FileLabel(o *v1.SELinuxOptions) (string, error)
}

// mountLabel is the SELinux label to mount the volume with. It is "" if the runtime relabels the files,
// or if they have no label.
func (v *Volumes) mountLabel(ctx context.Context, kind plugin.Plugin, p *v1.Pod, spec plugin.Spec) (string, error) {
	if v.deps.Labels == nil || spec.PV == nil || spec.Block() || wantsRecursiveRelabel(p) {
		return "", nil
	}
	// Without the feature gate, only ReadWriteOncePod volumes.
	if v.cfg.SELinuxMountReadWriteOncePodOnly && !slices.Equal(spec.PV.Spec.AccessModes, []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}) {
		return "", nil
	}
	mounter, ok := kind.(plugin.SELinuxMounter)
	if !ok {
		return "", nil
	}
	supported, err := mounter.SupportsSELinuxMount(ctx, spec)
	if err != nil || !supported {
		return "", err
	}
	labels, err := v.containerLabels(p, spec.Volume.Name)
	if err != nil || len(labels) == 0 {
		return "", err
	}
	if len(labels) > 1 {
		return "", fmt.Errorf("multiple SELinux labels found: %s", strings.Join(labels, ","))
	}
	return labels[0], nil
}

// wantsRecursiveRelabel reports whether the pod has the SELinux change policy Recursive.
func wantsRecursiveRelabel(p *v1.Pod) bool {
	sc := p.Spec.SecurityContext
	return sc != nil && sc.SELinuxChangePolicy != nil && *sc.SELinuxChangePolicy == v1.SELinuxChangePolicyRecursive
}

// containerLabels are the distinct labels of the containers that mount the volume.
func (v *Volumes) containerLabels(p *v1.Pod, volume string) ([]string, error) {
	var labels []string
	for c := range pod.Containers(p) {
		options := selinuxOptions(p, c)
		mounts := func(m v1.VolumeMount) bool { return m.Name == volume }
		if options == nil || !slices.ContainsFunc(c.VolumeMounts, mounts) {
			continue
		}
		label, err := v.deps.Labels.FileLabel(options)
		if err != nil {
			return nil, err
		}
		labels = append(labels, label)
	}
	slices.Sort(labels)
	return slices.Compact(labels), nil
}

// selinuxOptions are those of the container, or else of the pod.
func selinuxOptions(p *v1.Pod, c *v1.Container) *v1.SELinuxOptions {
	if c.SecurityContext != nil && c.SecurityContext.SELinuxOptions != nil {
		return c.SecurityContext.SELinuxOptions
	}
	if p.Spec.SecurityContext != nil {
		return p.Spec.SecurityContext.SELinuxOptions
	}
	return nil
}
