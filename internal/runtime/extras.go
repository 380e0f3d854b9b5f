package runtime

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// Extras are what devices and claims add to a container, before what its spec asks for.
type Extras struct {
	Envs        []EnvVar
	Mounts      []*runtimeapi.Mount
	Devices     []*runtimeapi.Device
	CDIDevices  []*runtimeapi.CDIDevice
	Annotations map[string]string
}
