package config

import (
	kubelet "k8s.io/kubelet/config/v1beta1"
)

func (c *commandLine) bindFiles(f *Flags, kc *kubelet.KubeletConfiguration) {
	s := c.under("Configuration")
	s.string("config", "", &f.ConfigFile, "configuration file (kubelet.config.k8s.io/v1beta1); flags override it")
	s.string("config-dir", "", &f.ConfigDir, "directory of *.conf files that override --config, read in the order of their names, subdirectories included")
	s.string("root-dir", "", &f.RootDir, "directory of pods, volumes and plugins")
	s.value("feature-gates", "featureGates", gatesFlag(&kc.FeatureGates), "features to turn on or off, Name=true|false separated by commas")
}

func (c *commandLine) bindRuntime(f *Flags, kc *kubelet.KubeletConfiguration) {
	s := c.under("Container runtime")
	s.string("container-runtime-endpoint", "containerRuntimeEndpoint", &kc.ContainerRuntimeEndpoint, "socket of the container runtime")
	s.string("image-service-endpoint", "imageServiceEndpoint", &kc.ImageServiceEndpoint, "socket of the image service, when it is not the runtime's")
	s.duration("runtime-request-timeout", "runtimeRequestTimeout", &kc.RuntimeRequestTimeout.Duration, "time a runtime request may take, those that wait by nature aside")
	s.string("runtime-cgroups", "", &f.RuntimeCgroups, "cgroup of the container runtime")
	s.string("hairpin-mode", "hairpinMode", &kc.HairpinMode, "how a pod reaches itself through a service")
	s.bool("make-iptables-util-chains", "makeIPTablesUtilChains", kc.MakeIPTablesUtilChains, "make the iptables chains that others look for")
}

func (c *commandLine) bindImages(f *Flags, kc *kubelet.KubeletConfiguration) {
	s := c.under("Images")
	s.string("image-credential-provider-config", "", &f.ImageCredentialProviderConfig, "file, or directory of files, that names credential provider plugins")
	s.string("image-credential-provider-bin-dir", "", &f.ImageCredentialProviderBinDir, "directory of credential provider plugins")
	s.int32("registry-qps", "registryPullQPS", kc.RegistryPullQPS, "pulls a second; 0 means no limit")
	s.int32("registry-burst", "registryBurst", &kc.RegistryBurst, "pulls that may exceed --registry-qps at once")
	s.bool("serialize-image-pulls", "serializeImagePulls", kc.SerializeImagePulls, "pull one image at a time")
	s.int32("image-gc-high-threshold", "imageGCHighThresholdPercent", kc.ImageGCHighThresholdPercent, "percentage of disk in use above which unused images are removed; 100 means never")
	s.int32("image-gc-low-threshold", "imageGCLowThresholdPercent", kc.ImageGCLowThresholdPercent, "percentage of disk in use that removing images goes down to")
	s.duration("minimum-image-ttl-duration", "imageMinimumGCAge", &kc.ImageMinimumGCAge.Duration, "age below which an unused image is kept")
}

func (c *commandLine) bindContainers(f *Flags, kc *kubelet.KubeletConfiguration) {
	s := c.under("Containers")
	s.bool("seccomp-default", "", &f.SeccompDefault, "make `RuntimeDefault` the seccomp profile of containers that name none")
	s.strings("allowed-unsafe-sysctls", "allowedUnsafeSysctls", &kc.AllowedUnsafeSysctls, "unsafe sysctls, or patterns ending in *, that pods may set")
	s.string("container-log-max-size", "containerLogMaxSize", &kc.ContainerLogMaxSize, "size at which a container's log is rotated")
	s.int32("container-log-max-files", "containerLogMaxFiles", kc.ContainerLogMaxFiles, "log files kept of a container, at least 2")
	s.int64("pod-max-pids", "podPidsLimit", kc.PodPidsLimit, "processes a pod may have; -1 means as many as the node allows")
	s.bool("cpu-cfs-quota", "cpuCFSQuota", kc.CPUCFSQuota, "enforce CPU limits")
	s.duration("cpu-cfs-quota-period", "cpuCFSQuotaPeriod", &kc.CPUCFSQuotaPeriod.Duration, "period that CPU limits are enforced over")
	s.duration("minimum-container-ttl-duration", "", &f.MinimumContainerTTL, "age below which a dead container is kept")
	s.int32("maximum-dead-containers-per-container", "", &f.MaximumDeadContainersPerContainer, "dead instances kept of a container, whose newest always stays; negative means no limit")
	s.int32("maximum-dead-containers", "", &f.MaximumDeadContainers, "dead containers kept on the node; pods that live keep the newest of each container; negative means no limit")
	for _, name := range []string{"minimum-container-ttl-duration", "maximum-dead-containers-per-container", "maximum-dead-containers"} {
		s.deprecate(name, "eviction thresholds replace it")
	}
}

func (c *commandLine) bindProcess(f *Flags, kc *kubelet.KubeletConfiguration) {
	s := c.under("Process")
	s.int32("oom-score-adj", "oomScoreAdj", kc.OOMScoreAdj, "oom_score_adj of the agent, -1000 to 1000")
	s.int64("max-open-files", "maxOpenFiles", &kc.MaxOpenFiles, "files the agent may have open")
	s.bool("fail-swap-on", "failSwapOn", kc.FailSwapOn, "do not start on a host with swap")
	s.bool("fail-cgroupv1", "failCgroupV1", kc.FailCgroupV1, "do not start on a host with cgroup v1")
	s.bool("protect-kernel-defaults", "protectKernelDefaults", &kc.ProtectKernelDefaults, "do not start when a kernel parameter differs from what is needed, instead of setting it")
	s.string("lock-file", "", &f.LockFile, "file that the agent holds a lock on")
	s.bool("exit-on-lock-contention", "", &f.ExitOnLockContention, "exit when another process opens --lock-file")
	s.duration("housekeeping-interval", "", &f.housekeepingInterval, "how often usage is collected")
	s.string("experimental-mounter-path", "", &f.mounterPath, "program that mounts")
	s.deprecate("experimental-mounter-path", "use CSI")
	s.value("version", "", &f.version, "print the version and exit; --version=raw prints all that is known of it")
	s.set.Lookup("version").NoOptDefVal = "true"
	s.set.BoolVarP(&f.help, "help", "h", false, "print this and exit")
	s.register("help", "")
}
