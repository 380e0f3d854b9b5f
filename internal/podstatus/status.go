package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/pod"
)

// Input is all that a pod's status depends on.
type Input struct {
	Pod      *v1.Pod
	Observed *pod.Observed
	// Previous is the status last derived (or, after a restart of the agent, the one the API
	// server holds). States that the runtime has forgotten are carried over from it.
	Previous v1.PodStatus
	Health   pod.HealthOf
	// Waiting says, by container name, why a container could not be started.
	Waiting map[string]pod.Waiting
	// Failure, where set, ends the pod whatever its containers say.
	Failure *pod.Failure
	HostIPs []string
	// IPv6First: of a pod's two addresses, the IPv6 one is shown first.
	IPv6First bool
	// Runtime is the scheme of container ids, such as "containerd".
	Runtime string
	Now     time.Time
	// Fields drops what the status shows only while a feature gate is on.
	Fields pod.GatedFields
	// Actual are the resources that the pod has; nil where those are what it was given.
	Actual *pod.Resources
	Resize pod.Resize
	// ResizeError says why what was given is not in force yet.
	ResizeError string
	// Resources says how what a container was given besides CPU and memory is doing; may be
	// nil.
	Resources func(container string) []v1.ResourceStatus
	// Volumes are those that something ails; nil where nobody knows.
	Volumes []v1.PodVolumeHealth
	// RecursiveReadOnly reports whether the pod's runtime can mount read-only all the way
	// down; it cannot where this is nil.
	RecursiveReadOnly func() bool
	// Stopped: the pod's containers were all stopped for good; none will start again.
	Stopped bool

	restartingAll bool // worked out once by Compute
}

// Compute derives the status. Condition transition times are the publisher's to set.
func Compute(in Input) v1.PodStatus {
	if in.Health == nil {
		in.Health = func(string) pod.Health { return pod.Health{} }
	}
	if in.Observed == nil {
		in.Observed = &pod.Observed{}
	}
	if isRejected(in) {
		return rejected(in)
	}
	in.restartingAll = restartsAll(in)
	s := basis(in)
	addresses(in, &s)
	containers(in, &s)
	capMessages(&s)
	resources(in, &s)

	s.Phase = phase(in, &s)
	if in.Failure != nil {
		s.Phase = v1.PodFailed
	}
	// A pod that ended stays as it ended.
	if pod.IsTerminal(in.Previous.Phase) {
		s.Phase = in.Previous.Phase
	}
	// The reason goes with the phase.
	if s.Phase == in.Previous.Phase {
		s.Reason, s.Message = in.Previous.Reason, in.Previous.Message
	}
	if in.Failure != nil && s.Phase == v1.PodFailed {
		s.Reason, s.Message = in.Failure.Reason, in.Failure.Message
	}
	s.Conditions = conditions(in, &s)
	return s
}

// basis is the part of a status that does not depend on containers.
func basis(in Input) v1.PodStatus {
	s := v1.PodStatus{
		ObservedGeneration: in.Pod.Generation,
		QOSClass:           pod.QOS(in.Pod),
		StartTime:          in.Previous.StartTime,
		// Others write these; they are kept as they are.
		NominatedNodeName:           in.Pod.Status.NominatedNodeName,
		ResourceClaimStatuses:       in.Pod.Status.ResourceClaimStatuses,
		ExtendedResourceClaimStatus: in.Pod.Status.ExtendedResourceClaimStatus,
		VolumeHealth:                in.Volumes,
	}
	if s.StartTime == nil {
		now := metav1.NewTime(in.Now)
		s.StartTime = &now
	}
	return s
}

// addresses fills in the node's and the pod's addresses. The pod keeps its last known
// address once its sandbox is gone, so that what was written down stays readable.
func addresses(in Input, s *v1.PodStatus) {
	for _, ip := range in.HostIPs {
		s.HostIPs = append(s.HostIPs, v1.HostIP{IP: ip})
	}
	if len(in.HostIPs) > 0 {
		s.HostIP = in.HostIPs[0]
	}
	var ips []string
	if in.Pod.Spec.HostNetwork {
		ips = in.HostIPs
	} else if sandbox := in.Observed.Sandbox(); sandbox != nil {
		ips = pod.Addresses(sandbox.IPs, in.IPv6First)
	}
	for _, ip := range ips {
		s.PodIPs = append(s.PodIPs, v1.PodIP{IP: ip})
	}
	if len(s.PodIPs) == 0 {
		s.PodIPs = in.Previous.PodIPs
	}
	if len(s.PodIPs) > 0 {
		s.PodIP = s.PodIPs[0].IP
	}
}
