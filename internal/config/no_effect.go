package config

import (
	"fmt"
	"maps"
	"slices"
)

// noEffect are the gates of the reference kubelet that change nothing here, and why. Whoever
// implements one deletes its row, here and in docs/node.md: a test finds what is read and in
// the table, and what is neither.
var noEffect = map[string]string{
	"CRIListStreaming":                             "the runtime is asked for its lists in one piece",
	"ChangeContainerStatusOnKubeletRestart":        "a restart of the agent leaves alone what pods show",
	"ClusterTrustBundleProjection":                 "trust bundles can always be projected",
	"DRANodeAllocatableResources":                  "CPU and memory are not taken from resource claims",
	"DRAWorkloadResourceClaims":                    "resource claims of pod groups are not looked for",
	"EventedPLEG":                                  "the runtime's events are used wherever it sends them",
	"ImageVolumeWithDigest":                        "the status of a pod does not show the digests of image volumes",
	"InPlacePodVerticalScalingExclusiveCPUs":       "a container with CPUs of its own keeps them as long as its pod lives",
	"InPlacePodVerticalScalingExclusiveMemory":     "a container with memory of its own keeps it as long as its pod lives",
	"InPlacePodVerticalScalingMemoryBackedVolumes": "a volume in memory keeps its size as long as its pod lives",
	"KubeletRegistrationGetOnExistsOnly":           "the Node is always read only when it cannot be created",
	"KubeletSeparateDiskGC":                        "a disk of the containers' own is always looked after",
	"PodAndContainerStatsFromCRI":                  "usage is read from the kernel",
	"PodCertificateRequest":                        "pod certificates can always be projected",
	"PodLevelResourcesFixKubeletQOSClass":          "resources of a pod that are empty never decide its QoS class",
	"ReloadKubeletClientCAFile":                    "the file is always read again when it changes",
	"ReloadKubeletServerCertificateFile":           "the files are always read again when they change",
	"RuntimeClassInImageCriApi":                    "images are not told apart by the runtime class of their pods",
	"TaintTolerationComparisonOperators":           "taints are not compared by their numbers",
	"TopologyManagerPolicyAlphaOptions":            "all options of the policy are stable",
	"TopologyManagerPolicyBetaOptions":             "all options of the policy are stable",
}

// vain tells of the gates that were set, alone or with their stage, to no effect.
func (g gates) vain() (notices []string) {
	for _, name := range slices.Sorted(maps.Keys(noEffect)) {
		if g[name] != knownGates()[name].on {
			notices = append(notices, fmt.Sprintf("feature gate %s=%t has no effect: %s", name, g[name], noEffect[name]))
		}
	}
	return notices
}
