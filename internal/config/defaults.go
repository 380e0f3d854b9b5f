package config

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logs "k8s.io/component-base/logs/api/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// defaultEvictionHard protects a node whose configuration file does not speak of eviction.
// It is not applied to a node that is configured by flags alone.
var defaultEvictionHard = map[string]string{
	"memory.available":   "100Mi",
	"nodefs.available":   "10%",
	"nodefs.inodesFree":  "5%",
	"imagefs.available":  "15%",
	"imagefs.inodesFree": "5%",
}

// orElse sets a value that is still zero: for these fields the API cannot tell zero from unset.
func orElse[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// orNew sets a value that was not given.
func orNew[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

func duration(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

// applyDefaults completes kc. It may run again on its own result, after drop-ins were
// merged, and then fills only what they removed. Afterwards every pointer that has a
// default is set.
func applyDefaults(kc *kubelet.KubeletConfiguration, g gates) {
	kc.TypeMeta = metav1.TypeMeta{Kind: "KubeletConfiguration", APIVersion: kubelet.SchemeGroupVersion.String()}
	defaultSources(kc)
	defaultServer(kc)
	defaultNode(kc)
	defaultImages(kc, g)
	defaultContainers(kc, g)
	defaultResources(kc)
	logs.SetRecommendedLoggingConfiguration(&kc.Logging)
}

func defaultSources(kc *kubelet.KubeletConfiguration) {
	orElse(&kc.SyncFrequency, duration(time.Minute))
	orElse(&kc.FileCheckFrequency, duration(20*time.Second))
	orElse(&kc.HTTPCheckFrequency, duration(20*time.Second))
	orElse(&kc.ConfigMapAndSecretChangeDetectionStrategy, kubelet.WatchChangeDetectionStrategy)
	orElse(&kc.ContentType, "application/vnd.kubernetes.protobuf")
	orNew(&kc.KubeAPIQPS, 50)
	orElse(&kc.KubeAPIBurst, 100)
	orNew(&kc.EventRecordQPS, 50)
	orElse(&kc.EventBurst, 100)
}

func defaultServer(kc *kubelet.KubeletConfiguration) {
	orNew(&kc.EnableServer, true)
	orElse(&kc.Address, "0.0.0.0")
	orElse(&kc.Port, 10250)
	orNew(&kc.HealthzPort, 10248)
	orElse(&kc.HealthzBindAddress, "127.0.0.1")
	orNew(&kc.Authentication.Anonymous.Enabled, false)
	orNew(&kc.Authentication.Webhook.Enabled, true)
	orElse(&kc.Authentication.Webhook.CacheTTL, duration(2*time.Minute))
	orElse(&kc.Authorization.Mode, kubelet.KubeletAuthorizationModeWebhook)
	orElse(&kc.Authorization.Webhook.CacheAuthorizedTTL, duration(5*time.Minute))
	orElse(&kc.Authorization.Webhook.CacheUnauthorizedTTL, duration(30*time.Second))
	orElse(&kc.StreamingConnectionIdleTimeout, duration(4*time.Hour))
	orNew(&kc.EnableDebuggingHandlers, true)
	orNew(&kc.EnableSystemLogHandler, true)
	orNew(&kc.EnableSystemLogQuery, false)
	orNew(&kc.EnableProfilingHandler, true)
	orNew(&kc.EnableDebugFlagsHandler, true)
}

func defaultNode(kc *kubelet.KubeletConfiguration) {
	orNew(&kc.RegisterNode, true)
	// A cluster that slowed the computing of the status down meant the reporting too.
	if kc.NodeStatusUpdateFrequency.Duration == 0 {
		orElse(&kc.NodeStatusReportFrequency, duration(5*time.Minute))
	}
	orElse(&kc.NodeStatusReportFrequency, kc.NodeStatusUpdateFrequency)
	orElse(&kc.NodeStatusUpdateFrequency, duration(10*time.Second))
	orNew(&kc.NodeStatusMaxImages, 50)
	orElse(&kc.NodeLeaseDurationSeconds, 40)
	orElse(&kc.MaxPods, 110)
	orNew(&kc.ResolverConfig, "/etc/resolv.conf")
	orNew(&kc.EnableControllerAttachDetach, true)
	orElse(&kc.VolumePluginDir, "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/")
	orElse(&kc.VolumeStatsAggPeriod, duration(time.Minute))
	orNew(&kc.LocalStorageCapacityIsolation, true)
	orNew(&kc.OOMScoreAdj, -999)
	orElse(&kc.MaxOpenFiles, 1000000)
	orNew(&kc.FailSwapOn, true)
	orNew(&kc.FailCgroupV1, true)
	orElse(&kc.HairpinMode, kubelet.PromiscuousBridge)
	orNew(&kc.MakeIPTablesUtilChains, true)
	orNew(&kc.IPTablesMasqueradeBit, 14)
	orNew(&kc.IPTablesDropBit, 15)
}

func defaultImages(kc *kubelet.KubeletConfiguration, g gates) {
	orNew(&kc.RegistryPullQPS, 5)
	orElse(&kc.RegistryBurst, 10)
	orElse(&kc.ImageMinimumGCAge, duration(2*time.Minute))
	orNew(&kc.ImageGCHighThresholdPercent, 85)
	orNew(&kc.ImageGCLowThresholdPercent, 80)
	parallel := kc.MaxParallelImagePulls != nil && *kc.MaxParallelImagePulls > 1
	orNew(&kc.SerializeImagePulls, !parallel)
	if g["KubeletEnsureSecretPulledImages"] {
		orElse(&kc.ImagePullCredentialsVerificationPolicy, kubelet.NeverVerifyPreloadedImages)
	}
}

func defaultContainers(kc *kubelet.KubeletConfiguration, g gates) {
	orElse(&kc.ContainerRuntimeEndpoint, "unix:///run/containerd/containerd.sock")
	orElse(&kc.RuntimeRequestTimeout, duration(2*time.Minute))
	orElse(&kc.PodLogsDir, "/var/log/pods")
	orElse(&kc.ContainerLogMaxSize, "10Mi")
	orNew(&kc.ContainerLogMaxFiles, 5)
	orNew(&kc.ContainerLogMaxWorkers, 1)
	orNew(&kc.ContainerLogMonitorInterval, duration(10*time.Second))
	orNew(&kc.SeccompDefault, false)
	orNew(&kc.CPUCFSQuota, true)
	orNew(&kc.CPUCFSQuotaPeriod, duration(100*time.Millisecond))
	if kc.PodPidsLimit == nil || *kc.PodPidsLimit < 0 {
		limit := int64(-1)
		kc.PodPidsLimit = &limit
	}
	if g["KubeletCrashLoopBackOffMax"] {
		orNew(&kc.CrashLoopBackOff.MaxContainerRestartPeriod, duration(5*time.Minute))
	}
}

func defaultResources(kc *kubelet.KubeletConfiguration) {
	orNew(&kc.CgroupsPerQOS, true)
	orElse(&kc.CgroupDriver, "cgroupfs")
	orElse(&kc.CPUManagerPolicy, "none")
	orElse(&kc.CPUManagerReconcilePeriod, duration(10*time.Second))
	orElse(&kc.MemoryManagerPolicy, kubelet.NoneMemoryManagerPolicy)
	orElse(&kc.MemoryReservationPolicy, kubelet.NoneMemoryReservationPolicy)
	orElse(&kc.TopologyManagerPolicy, kubelet.NoneTopologyManagerPolicy)
	orElse(&kc.TopologyManagerScope, kubelet.ContainerTopologyManagerScope)
	if kc.EnforceNodeAllocatable == nil {
		kc.EnforceNodeAllocatable = []string{"pods"}
	}
	orElse(&kc.EvictionPressureTransitionPeriod, duration(5*time.Minute))
	orNew(&kc.MergeDefaultEvictionSettings, false)
}

// defaultEviction completes the thresholds of a configuration file. Drop-ins and flags
// come later and change the result key by key, or as a whole.
func defaultEviction(kc *kubelet.KubeletConfiguration) {
	if kc.EvictionHard == nil {
		kc.EvictionHard = maps.Clone(defaultEvictionHard)
		return
	}
	if !*kc.MergeDefaultEvictionSettings {
		return
	}
	for signal, threshold := range defaultEvictionHard {
		if _, ok := kc.EvictionHard[signal]; !ok {
			kc.EvictionHard[signal] = threshold
		}
	}
}

// defaultsOfFlags is the configuration of a node that has no file. The flags' defaults
// are older than the file's and differ in four fields. One of them, that bearer tokens
// are not checked, is kept; the three that would open the node to anyone (anonymous
// requests, everything allowed, the read-only port) are not.
func defaultsOfFlags(g gates) kubelet.KubeletConfiguration {
	var kc kubelet.KubeletConfiguration
	applyDefaults(&kc, g)
	*kc.Authentication.Webhook.Enabled = false
	return kc
}
