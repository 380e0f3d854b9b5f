package volume

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Mount is one volume, or a subPath of it, as a container mounts it.
type Mount struct {
	Name              string // of the volume
	HostPath          string
	ContainerPath     string
	ReadOnly          bool
	RecursiveReadOnly bool
	SELinuxRelabel    bool
	// ImageSubPath is the subPath of an image volume, which the runtime resolves.
	ImageSubPath string
	// Options are additional mount options, such as noexec.
	Options []string
	// Propagation is the mount propagation, None by default.
	Propagation v1.MountPropagationMode
}

// MountOptions are the inputs of ContainerMounts besides the pod.
type MountOptions struct {
	// Expand replaces $(VAR) in a subPathExpr with the container's environment. An unset variable is an
	// error.
	Expand func(expr string) (string, error)
	// RecursiveReadOnly is set if the runtime handler supports recursive read-only mounts.
	RecursiveReadOnly bool
}

// ContainerMounts converts the container's volumeMounts. mounted is the result of Mount. A subPath is
// resolved beneath its volume and bind mounted in the pod's directory, so that the pod cannot change
// what the runtime mounts. Unmount removes these bind mounts. A volume whose file system does not answer is an
// error.
func (v *Volumes) ContainerMounts(ctx context.Context, p *v1.Pod, c *v1.Container, mounted map[string]Mounted, opts MountOptions) ([]Mount, error) {
	translated := make([]Mount, 0, len(c.VolumeMounts))
	for i := range c.VolumeMounts {
		want := &c.VolumeMounts[i]
		vol, ok := mounted[want.Name]
		if !ok {
			return nil, fmt.Errorf("cannot find volume %q to mount into container %q", want.Name, c.Name)
		}
		m, err := translate(want, vol, opts)
		if err != nil {
			return nil, err
		}
		if v.cfg.BindMountOptions {
			m.Options = want.BindMountOptions
		}
		subPath, err := subPathOf(want, opts)
		if err != nil {
			return nil, err
		}
		if vol.Image {
			m.ImageSubPath = subPath
		} else if subPath != "" {
			m.HostPath, err = v.bindSubPathInTime(ctx, subPathRequest{
				pod: p.UID, volume: want.Name, container: c.Name, index: i, volumePath: vol.HostPath, path: subPath,
			})
			if err != nil {
				return nil, err
			}
		}
		translated = append(translated, m)
	}
	return translated, nil
}

func translate(want *v1.VolumeMount, vol Mounted, opts MountOptions) (Mount, error) {
	m := Mount{
		Name:           want.Name,
		HostPath:       vol.HostPath,
		ContainerPath:  want.MountPath,
		ReadOnly:       want.ReadOnly || vol.ReadOnly,
		SELinuxRelabel: vol.SELinuxRelabel,
		Propagation:    v1.MountPropagationNone,
	}
	if !path.IsAbs(m.ContainerPath) {
		m.ContainerPath = "/" + m.ContainerPath
	}
	if want.MountPropagation != nil {
		m.Propagation = *want.MountPropagation
	}
	switch m.Propagation {
	case v1.MountPropagationNone, v1.MountPropagationHostToContainer, v1.MountPropagationBidirectional:
	default:
		return Mount{}, fmt.Errorf("invalid MountPropagation mode: %q", m.Propagation)
	}
	var err error
	m.RecursiveReadOnly, err = recursiveReadOnly(want, opts.RecursiveReadOnly)
	if err != nil {
		return Mount{}, fmt.Errorf("failed to resolve recursive read-only mode: %w", err)
	}
	return m, nil
}

func recursiveReadOnly(want *v1.VolumeMount, supported bool) (bool, error) {
	if want.RecursiveReadOnly == nil || *want.RecursiveReadOnly == v1.RecursiveReadOnlyDisabled {
		return false, nil
	}
	if !want.ReadOnly {
		return false, fmt.Errorf("volume %q requested recursive read-only mode, but it is not read-only", want.Name)
	}
	if p := want.MountPropagation; p != nil && *p != v1.MountPropagationNone {
		return false, fmt.Errorf("volume %q requested recursive read-only mode, but it is not compatible with propagation %q", want.Name, *p)
	}
	switch mode := *want.RecursiveReadOnly; mode {
	case v1.RecursiveReadOnlyIfPossible:
		return supported, nil
	case v1.RecursiveReadOnlyEnabled:
		if !supported {
			return false, fmt.Errorf("volume %q requested recursive read-only mode, but it is not supported by the runtime", want.Name)
		}
		return true, nil
	default:
		return false, fmt.Errorf("unknown recursive read-only mode %q", mode)
	}
}

// subPathOf is the subPath of the mount, "" for the whole volume.
func subPathOf(want *v1.VolumeMount, opts MountOptions) (string, error) {
	sub := want.SubPath
	if want.SubPathExpr != "" {
		if opts.Expand == nil {
			return "", errors.New("subPathExpr: no environment to expand it with")
		}
		var err error
		if sub, err = opts.Expand(want.SubPathExpr); err != nil {
			return "", err
		}
	}
	if path.IsAbs(sub) {
		return "", fmt.Errorf("error SubPath `%s` must not be an absolute path", sub)
	}
	if slices.Contains(strings.Split(sub, "/"), "..") {
		return "", fmt.Errorf("unable to provision SubPath `%s`: must not contain '..'", sub)
	}
	return sub, nil
}
