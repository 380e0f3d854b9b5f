package config

import (
	"fmt"
	"maps"
	"slices"
)

// gatesWithoutEffect are gates of the reference kubelet that have no effect here, with the reason.
// docs/node.md lists the same rows. A test checks that every field of Features is either read or
// listed here.
var gatesWithoutEffect = map[string]string{
	"CRIListStreaming":                             "lists of the runtime are not streamed",
	"ChangeContainerStatusOnKubeletRestart":        "a restart of the kubelet does not change container statuses",
	"ClusterTrustBundleProjection":                 "projected trust bundles are always enabled",
	"DRANodeAllocatableResources":                  "CPU and memory are not allocated from resource claims",
	"DRAWorkloadResourceClaims":                    "resource claims of pod groups are not supported",
	"EventedPLEG":                                  "events of the runtime are used whenever it supports them",
	"ImageVolumeWithDigest":                        "the pod status does not contain digests of image volumes",
	"InPlacePodVerticalScalingExclusiveCPUs":       "exclusive CPUs of a container cannot be resized",
	"InPlacePodVerticalScalingExclusiveMemory":     "exclusive memory of a container cannot be resized",
	"InPlacePodVerticalScalingMemoryBackedVolumes": "memory-backed volumes cannot be resized",
	"KubeletRegistrationGetOnExistsOnly":           "the Node is always read only if creating it fails",
	"KubeletSeparateDiskGC":                        "a separate container filesystem is always garbage collected",
	"PodAndContainerStatsFromCRI":                  "usage is read from the kernel",
	"PodCertificateRequest":                        "projected pod certificates are always enabled",
	"PodLevelResourcesFixKubeletQOSClass":          "empty pod-level resources never determine the QoS class",
	"ReloadKubeletClientCAFile":                    "the file is always reloaded when it changes",
	"ReloadKubeletServerCertificateFile":           "the files are always reloaded when they change",
	"RuntimeClassInImageCriApi":                    "images are not distinguished by runtime class",
	"TaintTolerationComparisonOperators":           "numeric taint comparison is not supported",
	"TopologyManagerPolicyAlphaOptions":            "all policy options are stable",
	"TopologyManagerPolicyBetaOptions":             "all policy options are stable",
}

// ineffective returns notices for gates without effect that differ from their default.
func (g gates) ineffective() (notices []string) {
	for _, name := range slices.Sorted(maps.Keys(gatesWithoutEffect)) {
		if g[name] != knownGates()[name].on {
			notices = append(notices, fmt.Sprintf("feature gate %s=%t has no effect: %s", name, g[name], gatesWithoutEffect[name]))
		}
	}
	return notices
}
