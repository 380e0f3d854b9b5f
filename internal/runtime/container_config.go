package runtime

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Input is all that a container's configuration depends on.
type Input struct {
	Pod       *v1.Pod
	Container *v1.Container
	// RestartCount numbers the instances of the container, from 0.
	RestartCount int
	// NoInstance: the runtime has no earlier instance of the container. It may have lost it, so
	// the restart count also follows from the logs.
	NoInstance bool
	// Sandbox and SandboxID are the pod's sandbox, HostsIPs the pod's addresses for its hosts
	// file.
	Sandbox   *Sandbox
	SandboxID string
	HostsIPs  []string
	// ImageRef is the image's id in the runtime, ImageUser the user of its configuration.
	ImageRef  string
	ImageUser ImageUser
	// PodIPs are the sandbox's addresses, none on the host's network.
	PodIPs []string
	Envs   []EnvVar
	// Mounts, Devices, CDIDevices and Annotations come from device allocation.
	Mounts      []*runtimeapi.Mount
	Devices     []*runtimeapi.Device
	CDIDevices  []*runtimeapi.CDIDevice
	Annotations map[string]string
	// Volumes and BlockVolumes are mounted after them, then the hosts file and the termination
	// log.
	Volumes      []VolumeMount
	BlockVolumes []BlockVolume
	// VolumeGroups are the groups that own the pod's volumes.
	VolumeGroups []int64
	// TargetID is the container whose PID namespace an ephemeral container shares.
	TargetID string
}

// containerConfig builds the CRI configuration of a container. Its errors have the reason
// CreateContainerConfigError.
func (r *Runtime) containerConfig(in Input) (*runtimeapi.ContainerConfig, error) {
	if err := VerifyNonRoot(in.Pod, in.Container, in.ImageUser); err != nil {
		return nil, failed(ReasonContainerConfig, err)
	}
	security, err := r.containerSecurity(in)
	if err != nil {
		return nil, failed(ReasonContainerConfig, err)
	}
	annotations, err := containerAnnotations(in)
	if err != nil {
		return nil, failed(ReasonContainerConfig, err)
	}
	c := in.Container
	command, err := expandAll(c.Command, in.Envs)
	if err != nil {
		return nil, failed(ReasonContainerConfig, err)
	}
	args, err := expandAll(c.Args, in.Envs)
	if err != nil {
		return nil, failed(ReasonContainerConfig, err)
	}
	config := &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: uint32(in.RestartCount)},
		Image:       &runtimeapi.ImageSpec{Image: in.ImageRef, UserSpecifiedImage: c.Image},
		Command:     command,
		Args:        args,
		WorkingDir:  c.WorkingDir,
		Mounts:      r.mounts(in),
		Devices:     devices(in),
		CDIDevices:  in.CDIDevices,
		Labels:      containerLabels(in.Pod, c.Name),
		Annotations: annotations,
		LogPath:     logPath(c.Name, in.RestartCount),
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		StopSignal:  stopSignal(c),
		Linux:       &runtimeapi.LinuxContainerConfig{Resources: r.ContainerResources(in.Pod, c), SecurityContext: security},
	}
	for _, e := range in.Envs {
		config.Envs = append(config.Envs, &runtimeapi.KeyValue{Key: e.Name, Value: []byte(e.Value)})
	}
	if users := security.NamespaceOptions.UsernsOptions; users.Mode == runtimeapi.NamespaceMode_POD {
		for _, m := range config.Mounts {
			m.UidMappings, m.GidMappings = users.Uids, users.Gids
		}
	}
	return config, nil
}

const etcHosts = "/etc/hosts"

// mounts adds the kubelet's files to the volumes: the hosts file, unless the container mounts
// one or the pod has no IP yet, and the termination log.
func (r *Runtime) mounts(in Input) []*runtimeapi.Mount {
	all := append(slices.Clone(in.Mounts), volumeMounts(in)...)
	if needsHosts(in) {
		all = append(all, &runtimeapi.Mount{ContainerPath: etcHosts, HostPath: r.hostsPath(in.Pod), SelinuxRelabel: r.cfg.SELinux})
	}
	if path := in.Container.TerminationMessagePath; path != "" {
		// Instances of a container share a directory, so each file has a random name.
		file := filepath.Join(r.containerDir(string(in.Pod.UID), in.Container.Name), fmt.Sprintf("%08x", r.deps.Random()))
		all = append(all, &runtimeapi.Mount{ContainerPath: absolute(path), HostPath: file, SelinuxRelabel: r.cfg.SELinux})
	}
	return all
}

func needsHosts(in Input) bool {
	for _, m := range in.Container.VolumeMounts {
		if m.MountPath == etcHosts {
			return false
		}
	}
	return in.Pod.Spec.HostNetwork || len(in.PodIPs) > 0
}

func absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return "/" + path
}

// stopSignal returns the container's stop signal. The default is that of the image.
func stopSignal(c *v1.Container) runtimeapi.Signal {
	if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
		return runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT
	}
	name := strings.NewReplacer("+", "PLUS", "-", "MINUS").Replace(string(*c.Lifecycle.StopSignal))
	return runtimeapi.Signal(runtimeapi.Signal_value["SIGNAL_"+name])
}
