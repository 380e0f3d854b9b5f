package config

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logs "k8s.io/component-base/logs/api/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// defaultEvictionHard applies to configuration files without evictionHard. It does not apply to a
// node without a configuration file.
var defaultEvictionHard = map[string]string{
	"memory.available":   "100Mi",
	"nodefs.available":   "10%",
	"nodefs.inodesFree":  "5%",
	"imagefs.available":  "15%",
	"imagefs.inodesFree": "5%",
}

// setDefault replaces a zero value. In these fields of the API zero means unset.
func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// setDefaultPointer replaces a nil pointer.
func setDefaultPointer[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

func duration(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

// applyDefaults sets the defaults of kc. It is idempotent and runs again after drop-ins, which may
// remove values. Afterwards every pointer that has a default is set.
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
	setDefault(&kc.SyncFrequency, duration(time.Minute))
	setDefault(&kc.FileCheckFrequency, duration(20*time.Second))
	setDefault(&kc.HTTPCheckFrequency, duration(20*time.Second))
	setDefault(&kc.ConfigMapAndSecretChangeDetectionStrategy, kubelet.WatchChangeDetectionStrategy)
	setDefault(&kc.ContentType, "application/vnd.kubernetes.protobuf")
	setDefaultPointer(&kc.KubeAPIQPS, 50)
	setDefault(&kc.KubeAPIBurst, 100)
	setDefaultPointer(&kc.EventRecordQPS, 50)
	setDefault(&kc.EventBurst, 100)
}

func defaultServer(kc *kubelet.KubeletConfiguration) {
	setDefaultPointer(&kc.EnableServer, true)
	setDefault(&kc.Address, "0.0.0.0")
	setDefault(&kc.Port, 10250)
	setDefaultPointer(&kc.HealthzPort, 10248)
	setDefault(&kc.HealthzBindAddress, "127.0.0.1")
	setDefaultPointer(&kc.Authentication.Anonymous.Enabled, false)
	setDefaultPointer(&kc.Authentication.Webhook.Enabled, true)
	setDefault(&kc.Authentication.Webhook.CacheTTL, duration(2*time.Minute))
	setDefault(&kc.Authorization.Mode, kubelet.KubeletAuthorizationModeWebhook)
	setDefault(&kc.Authorization.Webhook.CacheAuthorizedTTL, duration(5*time.Minute))
	setDefault(&kc.Authorization.Webhook.CacheUnauthorizedTTL, duration(30*time.Second))
	setDefault(&kc.StreamingConnectionIdleTimeout, duration(4*time.Hour))
	setDefaultPointer(&kc.EnableDebuggingHandlers, true)
	setDefaultPointer(&kc.EnableSystemLogHandler, true)
	setDefaultPointer(&kc.EnableSystemLogQuery, false)
	setDefaultPointer(&kc.EnableProfilingHandler, true)
	setDefaultPointer(&kc.EnableDebugFlagsHandler, true)
}

func defaultNode(kc *kubelet.KubeletConfiguration) {
	setDefaultPointer(&kc.RegisterNode, true)
	// A longer update frequency also applies to the report frequency.
	if kc.NodeStatusUpdateFrequency.Duration == 0 {
		setDefault(&kc.NodeStatusReportFrequency, duration(5*time.Minute))
	}
	setDefault(&kc.NodeStatusReportFrequency, kc.NodeStatusUpdateFrequency)
	setDefault(&kc.NodeStatusUpdateFrequency, duration(10*time.Second))
	setDefaultPointer(&kc.NodeStatusMaxImages, 50)
	setDefault(&kc.NodeLeaseDurationSeconds, 40)
	setDefault(&kc.MaxPods, 110)
	setDefaultPointer(&kc.ResolverConfig, "/etc/resolv.conf")
	setDefaultPointer(&kc.EnableControllerAttachDetach, true)
	setDefault(&kc.VolumePluginDir, "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/")
	setDefault(&kc.VolumeStatsAggPeriod, duration(time.Minute))
	setDefaultPointer(&kc.LocalStorageCapacityIsolation, true)
	setDefaultPointer(&kc.OOMScoreAdj, -999)
	setDefault(&kc.MaxOpenFiles, 1000000)
	setDefaultPointer(&kc.FailSwapOn, true)
	setDefaultPointer(&kc.FailCgroupV1, true)
	setDefault(&kc.HairpinMode, kubelet.PromiscuousBridge)
	setDefaultPointer(&kc.MakeIPTablesUtilChains, true)
	setDefaultPointer(&kc.IPTablesMasqueradeBit, 14)
	setDefaultPointer(&kc.IPTablesDropBit, 15)
}

func defaultImages(kc *kubelet.KubeletConfiguration, g gates) {
	setDefaultPointer(&kc.RegistryPullQPS, 5)
	setDefault(&kc.RegistryBurst, 10)
	setDefault(&kc.ImageMinimumGCAge, duration(2*time.Minute))
	setDefaultPointer(&kc.ImageGCHighThresholdPercent, 85)
	setDefaultPointer(&kc.ImageGCLowThresholdPercent, 80)
	parallel := kc.MaxParallelImagePulls != nil && *kc.MaxParallelImagePulls > 1
	setDefaultPointer(&kc.SerializeImagePulls, !parallel)
	if g["KubeletEnsureSecretPulledImages"] {
		setDefault(&kc.ImagePullCredentialsVerificationPolicy, kubelet.NeverVerifyPreloadedImages)
	}
}

func defaultContainers(kc *kubelet.KubeletConfiguration, g gates) {
	setDefault(&kc.ContainerRuntimeEndpoint, "unix:///run/containerd/containerd.sock")
	setDefault(&kc.RuntimeRequestTimeout, duration(2*time.Minute))
	setDefault(&kc.PodLogsDir, "/var/log/pods")
	setDefault(&kc.ContainerLogMaxSize, "10Mi")
	setDefaultPointer(&kc.ContainerLogMaxFiles, 5)
	setDefaultPointer(&kc.ContainerLogMaxWorkers, 1)
	setDefaultPointer(&kc.ContainerLogMonitorInterval, duration(10*time.Second))
	setDefaultPointer(&kc.SeccompDefault, false)
	setDefaultPointer(&kc.CPUCFSQuota, true)
	setDefaultPointer(&kc.CPUCFSQuotaPeriod, duration(100*time.Millisecond))
	if kc.PodPidsLimit == nil || *kc.PodPidsLimit < 0 {
		limit := int64(-1)
		kc.PodPidsLimit = &limit
	}
	if g["KubeletCrashLoopBackOffMax"] {
		setDefaultPointer(&kc.CrashLoopBackOff.MaxContainerRestartPeriod, duration(5*time.Minute))
	}
}

func defaultResources(kc *kubelet.KubeletConfiguration) {
	setDefaultPointer(&kc.CgroupsPerQOS, true)
	setDefault(&kc.CgroupDriver, "cgroupfs")
	setDefault(&kc.CPUManagerPolicy, "none")
	setDefault(&kc.CPUManagerReconcilePeriod, duration(10*time.Second))
	setDefault(&kc.MemoryManagerPolicy, kubelet.NoneMemoryManagerPolicy)
	setDefault(&kc.MemoryReservationPolicy, kubelet.NoneMemoryReservationPolicy)
	setDefault(&kc.TopologyManagerPolicy, kubelet.NoneTopologyManagerPolicy)
	setDefault(&kc.TopologyManagerScope, kubelet.ContainerTopologyManagerScope)
	if kc.EnforceNodeAllocatable == nil {
		kc.EnforceNodeAllocatable = []string{"pods"}
	}
	setDefault(&kc.EvictionPressureTransitionPeriod, duration(5*time.Minute))
	setDefaultPointer(&kc.MergeDefaultEvictionSettings, false)
}

// defaultEviction sets the default thresholds of a configuration file. Drop-ins and flags, which are
// merged later, override single thresholds or all.
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

// flagDefaults returns the configuration of a node without a configuration file. The reference
// kubelet's defaults of flags differ from those of the file in four fields. One is the same here:
// bearer tokens are not authenticated. The three insecure ones are not: anonymous requests, the
// authorization mode AlwaysAllow and the read-only port.
func flagDefaults(g gates) kubelet.KubeletConfiguration {
	var kc kubelet.KubeletConfiguration
	applyDefaults(&kc, g)
	*kc.Authentication.Webhook.Enabled = false
	return kc
}
