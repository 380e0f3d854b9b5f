package sandbox

import (
	"strconv"

	dockercontainer "github.com/moby/moby/api/types/container"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/container"
	"swiftlet/cri-docker/internal/labels"
)

const (
	// pauseShares is the least that the kernel accepts: the pause process does nothing.
	pauseShares = 2
	// pauseOOMScore keeps the pause process alive while its pod has others to kill.
	pauseOOMScore = -998
)

// translate returns Docker's configuration of a pause container.
func translate(l labels.Sandbox, image, cgroupDriver string, a container.Abilities) (*dockercontainer.Config, *dockercontainer.HostConfig, error) {
	security := l.Config.GetLinux().GetSecurityContext()
	if container.OwnUsers(security.GetNamespaceOptions()) {
		return nil, nil, status.Error(codes.Unimplemented, "not supported with Docker Engine: user namespaces of pods")
	}
	all, err := l.Encode()
	if err != nil {
		return nil, nil, err
	}
	config := &dockercontainer.Config{Image: image, Labels: all, Healthcheck: &dockercontainer.HealthConfig{Test: []string{"NONE"}}}
	h := &dockercontainer.HostConfig{
		NetworkMode: "none", // until CNI connects it
		IpcMode:     "shareable",
		LogConfig:   dockercontainer.LogConfig{Type: "none"},
		Runtime:     l.Handler,
		Sysctls:     l.Config.GetLinux().GetSysctls(),
		OomScoreAdj: a.Limits.OOMScoreAdj(pauseOOMScore),

		ReadonlyRootfs: security.GetReadonlyRootfs(),
		SecurityOpt:    container.SELinux(security.GetSelinuxOptions()),
	}
	h.CPUShares = pauseShares
	h.CgroupParent = container.CgroupParent(l.Config.GetLinux().GetCgroupParent(), cgroupDriver)
	if hostNetwork(l.Config) {
		h.NetworkMode, h.UTSMode = "host", "host"
	} else {
		config.Hostname = l.Config.GetHostname()
	}
	if security.GetNamespaceOptions().GetIpc() == runtimeapi.NamespaceMode_NODE {
		h.IpcMode = "host"
	}
	config.User = user(security)
	return config, h, nil
}

// user is the user of the pause process; by default that of its image.
func user(s *runtimeapi.LinuxSandboxSecurityContext) string {
	if s.GetRunAsUser() == nil {
		return ""
	}
	name := strconv.FormatInt(s.GetRunAsUser().GetValue(), 10)
	if s.GetRunAsGroup() != nil {
		name += ":" + strconv.FormatInt(s.GetRunAsGroup().GetValue(), 10)
	}
	return name
}
