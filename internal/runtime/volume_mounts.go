package runtime

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// VolumeMount is a volume of the pod as a container sees it.
type VolumeMount struct {
	HostPath          string
	ContainerPath     string
	ReadOnly          bool
	RecursiveReadOnly bool
	SELinuxRelabel    bool
	Propagation       v1.MountPropagationMode
	// Options are further ones to mount with, such as noexec.
	Options []string
	// Image is what an image volume mounts in place of HostPath, nil for other volumes, and
	// ImageSubPath the part of it.
	Image        *VolumeImage
	ImageSubPath string
}

// VolumeImage is an image that a container mounts.
type VolumeImage struct {
	Ref       string // the runtime's id of it
	Reference string // what the pod says
}

// BlockVolume is a raw block volume as a container sees it.
type BlockVolume struct {
	HostPath      string
	ContainerPath string
	// Permissions are m to make a node, r to read, w to write.
	Permissions string
}

// propagations are the runtime's names for the API's modes.
var propagations = map[v1.MountPropagationMode]runtimeapi.MountPropagation{
	v1.MountPropagationNone:            runtimeapi.MountPropagation_PROPAGATION_PRIVATE,
	v1.MountPropagationHostToContainer: runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER,
	v1.MountPropagationBidirectional:   runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL,
}

func volumeMounts(in Input) []*runtimeapi.Mount {
	var all []*runtimeapi.Mount
	for _, m := range in.Volumes {
		all = append(all, &runtimeapi.Mount{
			ContainerPath:     m.ContainerPath,
			HostPath:          m.HostPath,
			Readonly:          m.ReadOnly,
			RecursiveReadOnly: m.RecursiveReadOnly,
			SelinuxRelabel:    m.SELinuxRelabel,
			Propagation:       propagations[m.Propagation],
			Image:             imageSpec(in, m.Image),
			ImageSubPath:      m.ImageSubPath,
			MountOptions:      m.Options,
		})
	}
	return all
}

func imageSpec(in Input, i *VolumeImage) *runtimeapi.ImageSpec {
	if i == nil {
		return nil
	}
	return &runtimeapi.ImageSpec{
		Image:              i.Ref,
		UserSpecifiedImage: i.Reference,
		RuntimeHandler:     in.Sandbox.Handler.Name,
		Annotations:        in.Pod.Annotations,
	}
}

func devices(in Input) []*runtimeapi.Device {
	all := slices.Clone(in.Devices)
	for _, d := range in.BlockVolumes {
		all = append(all, &runtimeapi.Device{HostPath: d.HostPath, ContainerPath: d.ContainerPath, Permissions: d.Permissions})
	}
	return all
}
