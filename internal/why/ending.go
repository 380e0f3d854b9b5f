package why

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// ending is what a pod that is to end waits for, nil for a pod that is not to end.
func (in *input) ending() *Cause {
	if in.stage == Starting && in.pod.DeletionTimestamp == nil {
		return nil
	}
	if s := in.worst(func(s StepReport) bool { return s.Kind.ends() || s.Kind == Observe }); s != nil {
		return in.ofStep(s)
	}
	switch {
	case in.pod.DeletionTimestamp == nil:
		return nil // it has ended by itself: its status says why
	case in.stage == Ended && len(in.pod.Finalizers) > 0:
		return &Cause{
			Where: "pod", What: "has ended, and is deleted when its finalizers are removed: " + strings.Join(in.pod.Finalizers, ", "),
			Fix: "metadata.finalizers, or the controllers that remove them", Since: in.since,
		}
	case in.stage == Ended:
		return &Cause{Where: "pod", What: "has ended, and waits for the API server to delete it", Since: in.since, Fix: "the API server"}
	}
	return &Cause{Where: "pod", What: "is being stopped", Since: in.pod.DeletionTimestamp.Time, Next: in.nextStart()}
}

// graceOver reports whether the pod's grace period is over. The deletion timestamp is its end.
func (in *input) graceOver() bool {
	return in.pod.DeletionTimestamp != nil && in.now.After(in.pod.DeletionTimestamp.Time.Add(2*time.Second))
}

// completed is why a pod that has ended by itself has done so.
func (in *input) completed() *Cause {
	switch in.status.Phase {
	case v1.PodSucceeded:
		return &Cause{Up: true, Where: "pod", What: "has succeeded: all its containers have completed"}
	case v1.PodFailed:
	default:
		return nil
	}
	for c := range pod.Containers(in.pod) {
		s := pod.FindStatus(in.status, c.Name)
		if s == nil || s.State.Terminated == nil || s.State.Terminated.ExitCode == 0 {
			continue
		}
		cause := &Cause{Where: in.where(c.Name), Since: s.State.Terminated.FinishedAt.Time}
		cause.What, cause.Fix, cause.Text = in.exit(c.Name, s.State.Terminated)
		cause.What = "the pod has failed: it " + cause.What + fmt.Sprintf(", and restartPolicy is %s", in.pod.Spec.RestartPolicy)
		return cause
	}
	return &Cause{Where: "pod", What: "has failed", Text: in.status.Message}
}

// failedPod is why the whole pod failed, nil if it did not.
func (in *input) failedPod() *Cause {
	reason, message := in.status.Reason, in.status.Message
	if in.failure != nil {
		reason, message = in.failure.Reason, in.failure.Message
	}
	if reason == "" || in.failure == nil && in.status.Phase != v1.PodFailed {
		return nil
	}
	cause := &Cause{Where: "pod", Class: Class(reason), Text: oneLine(strings.TrimPrefix(message, "Pod was rejected: ")), Since: in.since}
	words, known := podReasons[reason]
	if in.failure != nil {
		if of, evicted := evictions[in.failure.Signal]; evicted {
			words, known = of, true
		}
	}
	resource, outOf := strings.CutPrefix(reason, "OutOf")
	switch {
	case known:
		cause.What, cause.Fix = words.what, words.fix
	case outOf:
		cause.What = "was rejected: the node has too little " + resource
		cause.Fix = fmt.Sprintf("spec.containers[*].resources.requests.%s, or the pods on the node", resource)
	default:
		cause.What = "has failed: " + reason
	}
	return cause
}

// evictions has the sentences for evicted pods, by the signal or by the pod's limit.
var evictions = map[string]words{
	"memory.available":            {"was evicted: the node had too little memory", "spec.containers[*].resources.requests.memory, or what uses the node's memory"},
	"allocatableMemory.available": {"was evicted: the pods of the node used too much memory", "spec.containers[*].resources.requests.memory, or the pods on the node"},
	"nodefs.available":            {"was evicted: the node's disk was too full", "spec.containers[*].resources.requests.ephemeral-storage, or what fills the node's disk"},
	"nodefs.inodesFree":           {"was evicted: the node's disk had too few inodes", "what makes many files on the node's disk"},
	"imagefs.available":           {"was evicted: the disk of images was too full", "what fills the disk of the container runtime"},
	"imagefs.inodesFree":          {"was evicted: the disk of images had too few inodes", "what makes many files on the disk of the container runtime"},
	"containerfs.available":       {"was evicted: the disk of containers was too full", "what fills the disk of the container runtime"},
	"containerfs.inodesFree":      {"was evicted: the disk of containers had too few inodes", "what makes many files on the disk of the container runtime"},
	"pid.available":               {"was evicted: the node had too few process IDs", "what starts many processes, or podPidsLimit of the node"},
	"emptydirfs.limit":            {"was evicted: an emptyDir volume has more than its limit", "spec.volumes[*].emptyDir.sizeLimit, or what the pod writes"},
	"ephemeralpodfs.limit":        {"was evicted: its volumes, logs and layers have more than its limit", "spec.containers[*].resources.limits.ephemeral-storage, or what the pod writes"},
	"ephemeralcontainerfs.limit":  {"was evicted: the log and layer of a container have more than its limit", "spec.containers[*].resources.limits.ephemeral-storage, or what the container writes"},
}

// podReasons has the sentences for the reasons of failed pods, which are part of the API.
var podReasons = map[string]words{
	"Evicted":                              {"was evicted to relieve the node", "spec.containers[*].resources.requests, or what uses up the resource on the node"},
	"Preempting":                           {"was stopped to make room for a critical pod", "spec.priorityClassName, or the pods on the node"},
	"Preempted":                            {"was stopped to make room for a critical pod", "spec.priorityClassName, or the pods on the node"},
	"NodeShutdown":                         {"was rejected: the node is shutting down", "the node"},
	"Terminated":                           {"was stopped: the node is shutting down", "the node"},
	"DeadlineExceeded":                     {"was stopped: it ran longer than its deadline", "spec.activeDeadlineSeconds"},
	"NodeAffinity":                         {"was rejected: the node does not match its node selector or affinity", "spec.nodeSelector, spec.affinity.nodeAffinity, or the node's labels"},
	"NodeName":                             {"was rejected: it names another node", "spec.nodeName"},
	"NodePorts":                            {"was rejected: another pod has its host port", "spec.containers[*].ports[*].hostPort"},
	"TaintToleration":                      {"was rejected: it does not tolerate a taint of the node", "spec.tolerations, or the node's taints"},
	"SysctlForbidden":                      {"was rejected: the node does not allow a sysctl", "spec.securityContext.sysctls, or allowedUnsafeSysctls of the node"},
	"AppArmor":                             {"was rejected: the node cannot apply its AppArmor profile", "securityContext.appArmorProfile, or AppArmor on the node"},
	"UnexpectedAdmissionError":             {"was rejected: its devices could not be allocated", "spec.containers[*].resources.limits, or the device plugin on the node"},
	"TopologyAffinityError":                {"was rejected: its CPUs, memory and devices are not available on the NUMA nodes that the policy demands", "spec.containers[*].resources, or topologyManagerPolicy of the node"},
	"SMTAlignmentError":                    {"was rejected: its CPUs are not whole cores", "spec.containers[*].resources.requests.cpu"},
	"EmptyPodSharedPoolError":              {"was rejected: no CPUs or memory are left for its containers without exclusive ones", "spec.resources and spec.containers[*].resources"},
	"InvalidNodeInfo":                      {"was rejected: the kubelet has not read its Node yet", "the Node, or the API server"},
	"PodFeatureUnsupported":                {"was rejected: it needs features that the node does not have", "the fields of spec that use them, or the feature gates of the node"},
	"PodLevelResourcesNotSupported":        {"was rejected: the node does not support resources of pods", "spec.resources, or the feature gate PodLevelResources"},
	"SupplementalGroupsPolicyNotSupported": {"was rejected: the container runtime does not support the policy Strict", "spec.securityContext.supplementalGroupsPolicy"},
	"PodOSNotSupported":                    {"was rejected: it is for another operating system", "spec.os"},
	"PodOSSelectorNodeLabelDoesNotMatch":   {"was rejected: it is for another operating system", "the node selector kubernetes.io/os"},
	"VolumeAttachmentLimitExceeded":        {"was rejected: the node can attach no further volumes", "spec.volumes, or the pods on the node"},
}
