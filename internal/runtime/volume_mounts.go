package runtime

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// VolumeMount is a volume of the pod, mounted into a container.
type VolumeMount struct {
	HostPath          string
	ContainerPath     string
	ReadOnly          bool
	RecursiveReadOnly bool
	SELinuxRelabel    bool
	Propagation       v1.MountPropagationMode
	// Options are further mount options, such as noexec.
	Options []string
	// Image is mounted in place of HostPath for an image volume, nil for other volumes.
	// ImageSubPath is a path in the image.
	Image        *VolumeImage
	ImageSubPath string
}

// VolumeImage is an image that a container mounts.
type VolumeImage struct {
	Ref       string // the image's id in the runtime
	Reference string // as in the pod's spec
}

// BlockVolume is a raw block volume of a container.
type BlockVolume struct {
	HostPath      string
	ContainerPath string
	// Permissions are those of a device cgroup: r, w and m (mknod).
	Permissions string
}

// propagations maps the API's mount propagation modes to CRI's.
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
