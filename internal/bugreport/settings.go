package bugreport

import (
	"path/filepath"
	"strings"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// settings say where on its machine the kubelet has what.
type settings struct {
	rootDir, podLogs, cgroupRoot, runtime string
}

// defaultSettings are used if the kubelet does not respond.
func defaultSettings(cfg Config) settings {
	if cfg.Root == "" {
		return settings{rootDir: "/var/lib/kubelet", podLogs: "/var/log/pods", cgroupRoot: "/"}
	}
	return settings{
		rootDir: filepath.Join(cfg.Root, "kubelet"), podLogs: filepath.Join(cfg.Root, "log", "pods"), cgroupRoot: "/swiftlet",
		runtime: "unix://" + filepath.Join(cfg.RunDir, "containerd.sock"),
	}
}

func (s *settings) fromConfig(k *kubeletconfig.KubeletConfiguration) {
	set := func(to *string, value string) {
		if value != "" {
			*to = value
		}
	}
	set(&s.podLogs, k.PodLogsDir)
	set(&s.cgroupRoot, k.CgroupRoot)
	set(&s.runtime, k.ContainerRuntimeEndpoint)
}

// fromFlags reads the text of /flagz.
func (s *settings) fromFlags(text string) {
	for line := range strings.Lines(text) {
		if dir, found := strings.CutPrefix(strings.TrimSpace(line), "root-dir: "); found && filepath.IsAbs(dir) {
			s.rootDir = dir
		}
	}
}
