package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// mounts returns the status of each volume mount.
func mounts(in Input, c *v1.Container) []v1.VolumeMountStatus {
	var all []v1.VolumeMountStatus
	for _, m := range c.VolumeMounts {
		one := v1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mode := v1.RecursiveReadOnlyDisabled
			if recursive(in, c, &m) {
				mode = v1.RecursiveReadOnlyEnabled
			}
			one.RecursiveReadOnly = &mode
		}
		all = append(all, one)
	}
	return all
}

// recursive reports whether a mount is recursively read-only: the spec must enable it, and the pod's
// runtime must support it. A kubelet that has just started does not know the runtime's features
// yet, but it observes the container's mounts.
func recursive(in Input, c *v1.Container, m *v1.VolumeMount) bool {
	if m.RecursiveReadOnly == nil || *m.RecursiveReadOnly == v1.RecursiveReadOnlyDisabled {
		return false
	}
	if in.RecursiveReadOnly != nil && in.RecursiveReadOnly() {
		return true
	}
	latest := in.Observed.Latest(c.Name)
	return latest != nil && slices.ContainsFunc(latest.Mounts, func(is pod.Mount) bool {
		return is.ContainerPath == m.MountPath && is.RecursiveReadOnly
	})
}
