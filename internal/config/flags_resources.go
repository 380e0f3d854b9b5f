package config

import (
	cliflag "k8s.io/component-base/cli/flag"
	logs "k8s.io/component-base/logs/api/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

func (c *commandLine) bindReserved(kc *kubelet.KubeletConfiguration) {
	s := c.under("Cgroups and reserved resources")
	s.string("cgroup-driver", "cgroupDriver", &kc.CgroupDriver, "who manages cgroups: cgroupfs or systemd; a runtime that tells its own driver has the last word")
	s.string("cgroup-root", "cgroupRoot", &kc.CgroupRoot, "cgroup that pods' cgroups are made in")
	s.bool("cgroups-per-qos", "cgroupsPerQOS", kc.CgroupsPerQOS, "make a cgroup for each QoS class and pod")
	s.string("kubelet-cgroups", "kubeletCgroups", &kc.KubeletCgroups, "cgroup of the agent")
	s.string("system-cgroups", "systemCgroups", &kc.SystemCgroups, "cgroup of all processes that have none; needs --cgroup-root")
	s.stringMap("system-reserved", "systemReserved", &kc.SystemReserved, "cpu, memory, ephemeral-storage and pid kept for the system, as in cpu=200m,memory=500Mi")
	s.stringMap("kube-reserved", "kubeReserved", &kc.KubeReserved, "cpu, memory, ephemeral-storage and pid kept for Kubernetes, as in cpu=200m,memory=500Mi")
	s.strings("enforce-node-allocatable", "enforceNodeAllocatable", &kc.EnforceNodeAllocatable, "whom the limits are enforced on: none, or some of pods, system-reserved, system-reserved-compressible, kube-reserved, kube-reserved-compressible")
	s.string("system-reserved-cgroup", "systemReservedCgroup", &kc.SystemReservedCgroup, "cgroup that --system-reserved is enforced on")
	s.string("kube-reserved-cgroup", "kubeReservedCgroup", &kc.KubeReservedCgroup, "cgroup that --kube-reserved is enforced on")
	s.stringMap("qos-reserved", "qosReserved", &kc.QOSReserved, "percentage of memory that lower QoS classes may not touch, as in memory=50%")
}

func (c *commandLine) bindAllocation(kc *kubelet.KubeletConfiguration) {
	s := c.under("CPU, memory and topology")
	s.string("cpu-manager-policy", "cpuManagerPolicy", &kc.CPUManagerPolicy, "none or static")
	s.value("cpu-manager-policy-options", "cpuManagerPolicyOptions", cliflag.NewMapStringStringNoSplit(&kc.CPUManagerPolicyOptions), "an option of the policy, key=value; may be repeated")
	s.duration("cpu-manager-reconcile-period", "cpuManagerReconcilePeriod", &kc.CPUManagerReconcilePeriod.Duration, "how often CPU assignments are checked")
	s.string("memory-manager-policy", "memoryManagerPolicy", &kc.MemoryManagerPolicy, "None or Static")
	s.value("reserved-memory", "reservedMemory", &reservedMemoryValue{target: &kc.ReservedMemory}, "memory kept on NUMA nodes, as in 0:memory=1Gi,hugepages-1Gi=2Gi; may be repeated")
	s.string("reserved-cpus", "reservedSystemCPUs", &kc.ReservedSystemCPUs, "CPUs kept for the system, as in 0-1,4; overrides the cpu of --system-reserved and --kube-reserved")
	s.string("topology-manager-policy", "topologyManagerPolicy", &kc.TopologyManagerPolicy, "none, best-effort, restricted or single-numa-node")
	s.string("topology-manager-scope", "topologyManagerScope", &kc.TopologyManagerScope, "container or pod")
	s.stringMap("topology-manager-policy-options", "topologyManagerPolicyOptions", &kc.TopologyManagerPolicyOptions, "options of the policy, key=value separated by commas")
}

func (c *commandLine) bindEviction(f *Flags, kc *kubelet.KubeletConfiguration) {
	s := c.under("Eviction")
	s.value("eviction-hard", "evictionHard", cliflag.NewLangleSeparatedMapStringString(&kc.EvictionHard), "thresholds that evict pods at once, as in memory.available<1Gi,nodefs.available<10%")
	s.value("eviction-soft", "evictionSoft", cliflag.NewLangleSeparatedMapStringString(&kc.EvictionSoft), "thresholds that evict pods after their grace period")
	s.stringMap("eviction-soft-grace-period", "evictionSoftGracePeriod", &kc.EvictionSoftGracePeriod, "grace periods of --eviction-soft, as in memory.available=1m30s")
	s.duration("eviction-pressure-transition-period", "evictionPressureTransitionPeriod", &kc.EvictionPressureTransitionPeriod.Duration, "time a pressure condition is kept after the last sign of pressure")
	s.int32("eviction-max-pod-grace-period", "evictionMaxPodGracePeriod", &kc.EvictionMaxPodGracePeriod, "longest grace period in seconds of a pod evicted by --eviction-soft; negative means the pod's own")
	s.stringMap("eviction-minimum-reclaim", "evictionMinimumReclaim", &kc.EvictionMinimumReclaim, "what is reclaimed at least once a threshold is met, as in imagefs.available=2Gi")
	s.bool("kernel-memcg-notification", "kernelMemcgNotification", &kc.KernelMemcgNotification, "let the kernel tell when a memory threshold is crossed")
	s.bool("experimental-allocatable-ignore-eviction", "", &f.AllocatableIgnoreEviction, "do not subtract --eviction-hard from what pods may use")
	s.deprecate("experimental-allocatable-ignore-eviction", "will be removed")
}

func (c *commandLine) bindLogging(kc *kubelet.KubeletConfiguration) {
	s := c.under("Logging")
	l := &kc.Logging
	s.set.VarP(logs.VerbosityLevelPflag(&l.Verbosity), "v", "v", "how much is logged; 2 is usual, 4 is for debugging")
	s.register("v", "logging.verbosity")
	s.value("vmodule", "logging.vmodule", logs.VModuleConfigurationPflag(&l.VModule), "levels of single files, pattern=N separated by commas, added to those of the file; text format only")
	s.string("logging-format", "logging.format", &l.Format, "text or json")
	s.duration("log-flush-frequency", "logging.flushFrequency", &l.FlushFrequency.Duration.Duration, "longest time a log line is held back")
	s.bool("log-text-split-stream", "logging.options.text.splitStream", &l.Options.Text.SplitStream, "errors to stderr, the rest to stdout; needs LoggingAlphaOptions")
	s.bool("log-json-split-stream", "logging.options.json.splitStream", &l.Options.JSON.SplitStream, "errors to stderr, the rest to stdout; needs LoggingAlphaOptions")
	s.value("log-text-info-buffer-size", "logging.options.text.infoBufferSize", &l.Options.Text.InfoBufferSize, "bytes of log lines to hold back; needs LoggingAlphaOptions")
	s.value("log-json-info-buffer-size", "logging.options.json.infoBufferSize", &l.Options.JSON.InfoBufferSize, "bytes of log lines to hold back; needs LoggingAlphaOptions")
}
