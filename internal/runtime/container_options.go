package runtime

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// ContainerOptions are what device plugins and resource claims add to a container. They come before
// those of the spec.
type ContainerOptions struct {
	Envs        []EnvVar
	Mounts      []*runtimeapi.Mount
	Devices     []*runtimeapi.Device
	CDIDevices  []*runtimeapi.CDIDevice
	Annotations map[string]string
}
