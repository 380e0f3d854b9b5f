package config

import "reflect"

// Features are the feature gates that change the behavior of the kubelet, and some that have no
// effect yet (gatesWithoutEffect). Each field has the name of its gate. Other packages take single
// booleans into their own Config. When a gate is removed, so is its field, and the compiler finds
// its uses. A gate that only enables fields of pods has no field here: pod.GatedFields drops those
// fields when a pod is read.
type Features struct {
	AllowDNSOnlyNodeCSR                              bool
	ChangeContainerStatusOnKubeletRestart            bool
	ComponentFlagz                                   bool
	ComponentStatusz                                 bool
	ContainerCheckpoint                              bool
	CPUManagerPolicyAlphaOptions                     bool
	CPUManagerPolicyBetaOptions                      bool
	CSIVolumeHealth                                  bool
	DRAOptionalNodeOperations                        bool
	DRAWorkloadResourceClaims                        bool
	ExtendWebSocketsToKubelet                        bool
	GracefulNodeShutdown                             bool
	GracefulNodeShutdownBasedOnPodPriority           bool
	HugepageAwareEviction                            bool
	ImageVolumeWithDigest                            bool
	InPlacePodLevelResourcesVerticalScaling          bool
	InPlacePodVerticalScalingSchedulerPreemption     bool
	KubeletAllocatedPodsEndpoint                     bool
	KubeletEnsureSecretPulledImages                  bool
	KubeletInUserNamespace                           bool
	KubeletPodResourcesListUseActivePods             bool
	KubeletRegistrationGetOnExistsOnly               bool
	KubeletSeparateDiskGC                            bool
	KubeletServiceAccountTokenForCredentialProviders bool
	LocalStorageCapacityIsolationFSQuotaMonitoring   bool
	MemoryQoS                                        bool
	PodAndContainerStatsFromCRI                      bool
	PodLevelResourceManagers                         bool
	PodLevelResources                                bool
	PodLevelResourcesFixKubeletQOSClass              bool
	PodLogsQuerySplitStreams                         bool
	PodsAPI                                          bool
	QOSReserved                                      bool
	ReduceDefaultCrashLoopBackOffDecay               bool
	ReloadKubeletClientCAFile                        bool
	ReloadKubeletServerCertificateFile               bool
	ResourceHealthStatus                             bool
	ResourceHealthStatusMessage                      bool
	RuntimeClassInImageCriApi                        bool
	SELinuxMount                                     bool
	TopologyManagerPolicyAlphaOptions                bool
	TopologyManagerPolicyBetaOptions                 bool
	VolumeBindMountOptions                           bool
}

// features sets each field from its gate. A test checks that every field is a gate.
func (g gates) features() Features {
	var f Features
	v := reflect.ValueOf(&f).Elem()
	for i := range v.NumField() {
		v.Field(i).SetBool(g[v.Type().Field(i).Name])
	}
	return f
}

// Gate reports whether a gate is on, for what is listed by gate names: the features that the node
// declares to the cluster, and pod.GatedFields. Other code uses Features. A gate without effect reports its default, because the node must
// not declare what it does not implement.
func (c *Config) Gate(name string) bool {
	if _, ineffective := gatesWithoutEffect[name]; ineffective {
		return knownGates()[name].on
	}
	return c.gates[name]
}

// Gates calls visit for every known gate, with its stage (ALPHA, BETA, GA or DEPRECATED).
func (c *Config) Gates(visit func(name, stage string, on bool)) {
	for name, g := range knownGates() {
		visit(name, g.stage, c.gates[name])
	}
}
