package config

import "reflect"

// Features are the gates that change what this agent does beyond what a configuration may
// say, and some that could (noEffect). Each field is named for its gate. Consumers take the
// single booleans they need into their own Config; a gate that graduates is deleted here, and
// the compiler finds what depended on it.
type Features struct {
	AllowDNSOnlyNodeCSR                              bool
	AtomicWriteVolumeUserFields                      bool
	ChangeContainerStatusOnKubeletRestart            bool
	ComponentFlagz                                   bool
	ComponentStatusz                                 bool
	ContainerCheckpoint                              bool
	ContainerRestartRules                            bool
	ContainerStopSignals                             bool
	CPUManagerPolicyAlphaOptions                     bool
	CPUManagerPolicyBetaOptions                      bool
	CSIVolumeHealth                                  bool
	DRAOptionalNodeOperations                        bool
	EmptyDirVolumeMode                               bool
	EnvFiles                                         bool
	ExtendWebSocketsToKubelet                        bool
	GracefulNodeShutdown                             bool
	GracefulNodeShutdownBasedOnPodPriority           bool
	GRPCContainerProbeTLS                            bool
	H2CContainerProbe                                bool
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

// features reads each field's gate; a test holds every name against the table.
func (g gates) features() Features {
	var f Features
	v := reflect.ValueOf(&f).Elem()
	for i := range v.NumField() {
		v.Field(i).SetBool(g[v.Type().Field(i).Name])
	}
	return f
}

// Gate tells whether the named gate is on, for the features that the node declares to the
// cluster by their gates' names. Logic reads Features. One without effect is as by default:
// a node must not promise what it does not do.
func (c *Config) Gate(name string) bool {
	if _, vain := noEffect[name]; vain {
		return knownGates()[name].on
	}
	return c.gates[name]
}

// Gates calls show for every known gate, with its stage (ALPHA, BETA, GA or DEPRECATED).
func (c *Config) Gates(show func(name, stage string, on bool)) {
	for name, g := range knownGates() {
		show(name, g.stage, c.gates[name])
	}
}
