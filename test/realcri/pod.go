package realcri

import (
	"path/filepath"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/images"
)

// Pod returns the configuration of a sandbox, with the labels of a kubelet.
func (r *Runtime) Pod(name, uid string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "test", Uid: uid},
		Hostname:     name,
		LogDirectory: filepath.Join(r.LogDir(), uid),
		Labels: map[string]string{
			"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": "test", "io.kubernetes.pod.uid": uid,
		},
		Linux: &runtimeapi.LinuxPodSandboxConfig{CgroupParent: r.CgroupParent()},
	}
}

// Container returns the configuration of a busybox container that runs a shell script.
func (r *Runtime) Container(pod *runtimeapi.PodSandboxConfig, name, script string) *runtimeapi.ContainerConfig {
	labels := map[string]string{"io.kubernetes.container.name": name}
	for k, v := range pod.Labels {
		labels[k] = v
	}
	return &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: name},
		Image:       &runtimeapi.ImageSpec{Image: images.Busybox, UserSpecifiedImage: images.Busybox},
		Command:     []string{"sh", "-c", script},
		Labels:      labels,
		Annotations: map[string]string{"io.kubernetes.container.hash": "abc", "io.kubernetes.container.restartCount": "0"},
		LogPath:     name + "/0.log",
		Linux:       &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{CpuShares: 102}},
	}
}
