// Package container creates, runs and describes the containers of sandboxes.
package container

import (
	"path/filepath"
	"strings"

	dockercontainer "github.com/moby/moby/api/types/container"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// LogConfig makes Docker keep the whole log until it is converted, whatever the engine's own default is.
var LogConfig = dockercontainer.LogConfig{Type: "json-file", Config: map[string]string{
	"max-size": "9000p", "max-file": "1", "compress": "false"}}

// request is what is needed to translate a container.
type request struct {
	config       *runtimeapi.ContainerConfig
	sandboxID    string
	handler      string
	cgroupParent string
	image        string // ID
	labels       map[string]string
	abilities    Abilities
}

// translate returns Docker's configuration of a container.
func (r request) translate() (*dockercontainer.Config, *dockercontainer.HostConfig, error) {
	c := r.config
	if err := refused(c); err != nil {
		return nil, nil, err
	}
	config := &dockercontainer.Config{
		Image: r.image, Labels: r.labels,
		Entrypoint: c.GetCommand(), Cmd: c.GetArgs(), WorkingDir: c.GetWorkingDir(),
		Tty: c.GetTty(), OpenStdin: c.GetStdin(), StdinOnce: c.GetStdinOnce(),
		User:        user(c.GetLinux().GetSecurityContext()),
		StopSignal:  stopSignal(c.GetStopSignal()),
		Healthcheck: &dockercontainer.HealthConfig{Test: []string{"NONE"}}, // the kubelet probes
	}
	for _, env := range c.GetEnvs() {
		config.Env = append(config.Env, env.GetKey()+"="+string(env.GetValue()))
	}
	h := &dockercontainer.HostConfig{
		LogConfig: LogConfig,
		Runtime:   r.handler,
		Resources: resources(c.GetLinux().GetResources()),
	}
	h.CgroupParent = r.cgroupParent
	h.OomScoreAdj = r.abilities.Limits.OOMScoreAdj(int(c.GetLinux().GetResources().GetOomScoreAdj()))
	namespaces(h, c.GetLinux().GetSecurityContext().GetNamespaceOptions(), r.sandboxID)
	for _, d := range c.GetDevices() {
		h.Devices = append(h.Devices, dockercontainer.DeviceMapping{
			PathOnHost: d.GetHostPath(), PathInContainer: d.GetContainerPath(), CgroupPermissions: d.GetPermissions()})
	}
	var err error
	if h.Binds, h.Mounts, err = mounts(c.GetMounts()); err != nil {
		return nil, nil, err
	}
	return config, h, applySecurity(h, c.GetLinux().GetSecurityContext(), r.abilities)
}

// namespaces joins those of the pause container, unless the pod uses the node's.
func namespaces(h *dockercontainer.HostConfig, o *runtimeapi.NamespaceOption, sandboxID string) {
	ofPause := "container:" + sandboxID
	h.NetworkMode, h.IpcMode = dockercontainer.NetworkMode(ofPause), dockercontainer.IpcMode(ofPause)
	if o.GetNetwork() == runtimeapi.NamespaceMode_NODE {
		h.UTSMode = "host" // the pause container is in the node's network
	}
	if o.GetIpc() == runtimeapi.NamespaceMode_NODE {
		h.IpcMode = "host"
	}
	switch o.GetPid() {
	case runtimeapi.NamespaceMode_POD:
		h.PidMode = dockercontainer.PidMode(ofPause)
	case runtimeapi.NamespaceMode_NODE:
		h.PidMode = "host"
	case runtimeapi.NamespaceMode_TARGET:
		h.PidMode = dockercontainer.PidMode("container:" + o.GetTargetId())
	}
}

// CgroupParent is Docker's form of a pod's cgroup: the systemd driver takes the name of a slice.
func CgroupParent(parent, driver string) string {
	if parent != "" && driver == "systemd" {
		return filepath.Base(parent)
	}
	return parent
}

func stopSignal(s runtimeapi.Signal) string {
	if s == runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		return "" // that of the image, or SIGTERM
	}
	return strings.TrimPrefix(s.String(), "SIGNAL_")
}
