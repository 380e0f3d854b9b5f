package config

import (
	"fmt"
	"maps"
	"reflect"
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
	"EventedPLEG":                                  "events of the runtime are used whenever it supports them",
	"ImageVolumeWithDigest":                        "the pod status does not contain digests of image volumes",
	"InPlacePodVerticalScalingExclusiveCPUs":       "exclusive CPUs of a container cannot be resized",
	"InPlacePodVerticalScalingExclusiveMemory":     "exclusive memory of a container cannot be resized",
	"InPlacePodVerticalScalingMemoryBackedVolumes": "memory-backed volumes cannot be resized",
	"KubeletRegistrationGetOnExistsOnly":           "the Node is always read only if creating it fails",
	"KubeletSeparateDiskGC":                        "a separate container filesystem is always garbage collected",
	"PodCertificateRequest":                        "projected pod certificates are always enabled",
	"PodLevelResourcesFixKubeletQOSClass":          "empty pod-level resources never determine the QoS class",
	"ReloadKubeletClientCAFile":                    "the file is always reloaded when it changes",
	"ReloadKubeletServerCertificateFile":           "the files are always reloaded when they change",
	"RuntimeClassInImageCriApi":                    "images are not distinguished by runtime class",
	"TaintTolerationComparisonOperators":           "numeric taint comparison is not supported",
	"TopologyManagerPolicyAlphaOptions":            "all policy options are stable",
	"TopologyManagerPolicyBetaOptions":             "all policy options are stable",
}

// fieldsWithoutEffect are fields of the configuration that have no effect here, with the reason, whether
// a file or a flag sets them. docs/node.md lists the same rows. A test checks that every field is either
// read or listed here.
var fieldsWithoutEffect = map[string]string{
	"cpuManagerReconcilePeriod":           "CPU assignments are applied as soon as they change",
	"hairpinMode":                         "the network plugin of the container runtime configures it",
	"iptablesDropBit":                     "no iptables rule marks packets",
	"iptablesMasqueradeBit":               "no iptables rule marks packets",
	"kernelMemcgNotification":             "kernel notifications are always used",
	"logging.flushFrequency":              "log lines are not buffered",
	"logging.options.json.infoBufferSize": "log lines are not buffered",
	"logging.options.text.infoBufferSize": "log lines are not buffered",
	"podCIDR":                             "the runtime gets the pod CIDR from the Node only",
	"showHiddenMetricsForVersion":         "no metric is hidden",
}

// flagsWithoutEffect are flags without a field that have no effect here, with the reason.
var flagsWithoutEffect = map[string]string{
	"experimental-mounter-path": "volumes are mounted without a helper program",
	"housekeeping-interval":     "usage is read from the kernel on request, not collected periodically",
}

// whyIneffective returns the reason why a flag has no effect, or an empty string.
func (c *commandLine) whyIneffective(flag string) string {
	if field, ok := c.fields[flag]; ok {
		return fieldsWithoutEffect[field]
	}
	return flagsWithoutEffect[flag]
}

// ineffectiveFields returns notices for fields without effect that a file sets to other values than the
// default. Files of other programs, such as kubeadm, contain many fields with their defaults.
func (c *Config) ineffectiveFields() (notices []string) {
	defaults := flagDefaults(nil)
	set, err := toValues(&c.Kubelet)
	if err != nil {
		return nil // validate has reported it
	}
	unset, err := toValues(&defaults)
	if err != nil {
		return nil
	}
	for _, field := range slices.Sorted(maps.Keys(fieldsWithoutEffect)) {
		origin := c.Origins.Of(field)
		if origin.File != "" && !reflect.DeepEqual(valueAt(set, field), valueAt(unset, field)) {
			notices = append(notices, fmt.Sprintf("%s: %s has no effect: %s", origin, field, fieldsWithoutEffect[field]))
		}
	}
	return notices
}

// insecureDefaults are fields whose defaults, without a configuration file, open the node in the reference
// kubelet and not here.
var insecureDefaults = map[string]string{
	"authentication.anonymous.enabled": "true",
	"authorization.mode":               "AlwaysAllow",
	"readOnlyPort":                     "10255",
}

// securedDefaults lists the insecure defaults that apply in the reference kubelet.
func (c *Config) securedDefaults() (departures []string) {
	if len(c.files) > 0 {
		return nil
	}
	for _, field := range slices.Sorted(maps.Keys(insecureDefaults)) {
		if c.Origins.Of(field) == (Origin{}) {
			departures = append(departures, fmt.Sprintf("%s: is secure by default; the default of the reference kubelet is %s", field, insecureDefaults[field]))
		}
	}
	return departures
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
