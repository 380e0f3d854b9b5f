package podsync

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"swiftlet/internal/image"
	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
	"swiftlet/internal/volume"
)

// input gathers what a container's configuration depends on.
func (a *attempt) input(ctx context.Context, s plan.Start, box sandbox, from image.Image, mounted map[string]volume.Mounted, images map[string]*runtime.VolumeImage) (runtime.Input, error) {
	options, err := a.deps.Resources.ContainerOptions(ctx, a.p, s.Container)
	if err != nil {
		return runtime.Input{}, err
	}
	envs, err := runtime.Environment(ctx, runtime.EnvInput{
		Pod:         a.p,
		Container:   s.Container,
		PodIPs:      a.podIPs(box),
		HostIPs:     a.deps.Node.HostIPs(),
		Allocatable: a.deps.Node.Allocatable(),
		VolumePath: func(name string) (string, bool) {
			m, ok := mounted[name]
			return m.HostPath, ok
		},
	}, a.deps.Sources)
	if err != nil {
		return runtime.Input{}, err
	}
	mounts, err := a.deps.Volumes.ContainerMounts(ctx, a.p, s.Container, mounted, volume.MountOptions{
		Expand:            func(expr string) (string, error) { return expandPath(expr, envs) },
		RecursiveReadOnly: a.prepared.Handler.RecursiveReadOnly,
	})
	if err != nil {
		return runtime.Input{}, err
	}
	devices, err := a.deps.Volumes.ContainerDevices(s.Container, mounted)
	if err != nil {
		return runtime.Input{}, err
	}
	return runtime.Input{
		Pod:          a.p,
		Container:    s.Container,
		RestartCount: s.RestartCount,
		NoInstance:   a.observed.Latest(s.Container.Name) == nil,
		Sandbox:      a.prepared,
		SandboxID:    box.id,
		HostsIPs:     a.podIPs(box),
		ImageRef:     from.Ref,
		ImageUser:    runtime.ImageUser{UID: from.UID, Name: from.User},
		PodIPs:       box.ips,
		Envs:         append(options.Envs, envs...),
		Mounts:       options.Mounts,
		Devices:      options.Devices,
		CDIDevices:   options.CDIDevices,
		Annotations:  options.Annotations,
		Volumes:      volumeMounts(mounts, images),
		BlockVolumes: blockVolumes(devices),
		VolumeGroups: volumeGroups(mounted),
		TargetID:     a.target(s),
	}, nil
}

// expandPath expands a path and fails for a variable that is not set, which would silently
// mount another directory.
func expandPath(expr string, envs []runtime.EnvVar) (string, error) {
	var missing []string
	expanded, err := runtime.Expand(expr, func(name string) (string, bool) {
		for _, e := range envs {
			if e.Name == name && e.Value != "" {
				return e.Value, true
			}
		}
		missing = append(missing, name)
		return "", false
	})
	if err != nil {
		return "", err
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return "", fmt.Errorf("missing value for %s", strings.Join(missing, ", "))
	}
	return expanded, nil
}

func volumeMounts(mounts []volume.Mount, images map[string]*runtime.VolumeImage) []runtime.VolumeMount {
	var all []runtime.VolumeMount
	for _, m := range mounts {
		all = append(all, runtime.VolumeMount{
			HostPath:          m.HostPath,
			ContainerPath:     m.ContainerPath,
			ReadOnly:          m.ReadOnly,
			RecursiveReadOnly: m.RecursiveReadOnly,
			SELinuxRelabel:    m.SELinuxRelabel,
			Propagation:       m.Propagation,
			Options:           m.Options,
			Image:             images[m.Name],
			ImageSubPath:      m.ImageSubPath,
		})
	}
	return all
}

func blockVolumes(devices []volume.Device) []runtime.BlockVolume {
	var all []runtime.BlockVolume
	for _, d := range devices {
		all = append(all, runtime.BlockVolume(d))
	}
	return all
}

// volumeGroups returns the supplemental groups of the pod's volumes.
func volumeGroups(mounted map[string]volume.Mounted) []int64 {
	var groups []int64
	for _, m := range mounted {
		if m.Group != nil && !slices.Contains(groups, *m.Group) {
			groups = append(groups, *m.Group)
		}
	}
	slices.Sort(groups)
	return groups
}

// target returns the id of the container whose PID namespace an ephemeral container shares.
func (a *attempt) target(s plan.Start) string {
	if s.Kind != pod.Ephemeral {
		return ""
	}
	for _, e := range a.p.Spec.EphemeralContainers {
		if e.Name != s.Container.Name || e.TargetContainerName == "" {
			continue
		}
		if latest := a.observed.Latest(e.TargetContainerName); latest != nil {
			return latest.ID
		}
	}
	return ""
}
