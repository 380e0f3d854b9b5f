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

// Labels knows what label the files of a process have; "" where that is not known.
type Labels interface {
	FileLabel(o *v1.SELinuxOptions) (string, error)
}

// mountLabel is the label that the volume as a whole is mounted with. It is "" where files
// are labelled one by one, by the runtime, or not at all.
func (v *Volumes) mountLabel(ctx context.Context, kind plugin.Plugin, p *v1.Pod, spec plugin.Spec) (string, error) {
	if v.deps.Labels == nil || spec.PV == nil || spec.Block() || relabels(p) {
		return "", nil
	}
	// With the gate off, only those that one pod has alone.
	if v.cfg.SELinuxOnePodOnly && !slices.Equal(spec.PV.Spec.AccessModes, []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}) {
		return "", nil
	}
	labelled, ok := kind.(plugin.SELinuxMounter)
	if !ok {
		return "", nil
	}
	able, err := labelled.SupportsSELinuxMount(ctx, spec)
	if err != nil || !able {
		return "", err
	}
	labels, err := v.labelsOf(p, spec.Volume.Name)
	if err != nil || len(labels) == 0 {
		return "", err
	}
	if len(labels) > 1 {
		return "", fmt.Errorf("multiple SELinux labels found: %s", strings.Join(labels, ","))
	}
	return labels[0], nil
}

// relabels reports whether the pod's author wants files to be labelled one by one.
func relabels(p *v1.Pod) bool {
	sc := p.Spec.SecurityContext
	return sc != nil && sc.SELinuxChangePolicy != nil && *sc.SELinuxChangePolicy == v1.SELinuxChangePolicyRecursive
}

// labelsOf are the different ones of the containers that mount the volume.
func (v *Volumes) labelsOf(p *v1.Pod, volume string) ([]string, error) {
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

// selinuxOptions are the container's own, or else the pod's.
func selinuxOptions(p *v1.Pod, c *v1.Container) *v1.SELinuxOptions {
	if c.SecurityContext != nil && c.SecurityContext.SELinuxOptions != nil {
		return c.SecurityContext.SELinuxOptions
	}
	if p.Spec.SecurityContext != nil {
		return p.Spec.SecurityContext.SELinuxOptions
	}
	return nil
}
