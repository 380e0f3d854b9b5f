package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/clip"
	"swiftlet/internal/pod"
)

// Input is all that a pod's status depends on.
type Input struct {
	// Pod may have a terminal phase that another component wrote; then the pod keeps it.
	Pod      *v1.Pod
	Observed *pod.Observed
	// Previous is the status last derived or, after a restart of the kubelet, that of the API
	// server. It has the states of containers that the runtime no longer has.
	Previous v1.PodStatus
	Health   pod.HealthOf
	// Waiting has the reasons of containers that failed to start, by name.
	Waiting map[string]pod.Waiting
	// Failure, if set, makes the pod fail whatever the state of its containers.
	Failure *pod.Failure
	HostIPs []string
	// IPv6First: of a pod's two IPs, the IPv6 one is the primary.
	IPv6First bool
	// Runtime is the scheme of container ids, such as "containerd".
	Runtime string
	Now     time.Time
	// Fields drops what the status shows only while a feature gate is on.
	Fields pod.GatedFields
	// Actual are the resources in force; nil if they are the allocated ones.
	Actual *pod.Resources
	Resize pod.Resize
	// ResizeError is why the allocated resources are not in force yet.
	ResizeError string
	// ResourceHealth returns the health of a container's devices and claims; may be nil.
	ResourceHealth func(container string) []v1.ResourceStatus
	// VolumeHealth is the health of the pod's volumes; nil if unknown.
	VolumeHealth []v1.PodVolumeHealth
	// RecursiveReadOnly reports whether the pod's runtime supports recursive read-only mounts;
	// nil is no support.
	RecursiveReadOnly func() bool
	// Stopped: all containers have stopped, and none will start again.
	Stopped bool

	restartingAll bool // set by Compute
}

// Compute derives the status.
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
	in.Previous = withAPIPhase(in)
	in.restartingAll = restartsAll(in)
	s := base(in)
	addresses(in, &s)
	containers(in, &s)
	capMessages(&s)
	resources(in, &s)

	s.Phase = phase(in, &s)
	if in.Failure != nil {
		s.Phase = v1.PodFailed
	}
	// A terminal phase does not change.
	if pod.IsTerminal(in.Previous.Phase) {
		s.Phase = in.Previous.Phase
	}
	// The reason belongs to the phase.
	if s.Phase == in.Previous.Phase {
		s.Reason, s.Message = in.Previous.Reason, in.Previous.Message
	}
	if in.Failure != nil && s.Phase == v1.PodFailed {
		s.Reason, s.Message = in.Failure.Reason, clip.Text(in.Failure.Message, maxPodMessage)
	}
	s.Conditions = conditions(in, &s)
	return s
}

// base returns the part of a status that does not depend on containers.
func base(in Input) v1.PodStatus {
	s := v1.PodStatus{
		ObservedGeneration: in.Pod.Generation,
		QOSClass:           pod.QOS(in.Pod),
		StartTime:          in.Previous.StartTime,
		// Other components write these.
		NominatedNodeName:           in.Pod.Status.NominatedNodeName,
		ResourceClaimStatuses:       in.Pod.Status.ResourceClaimStatuses,
		ExtendedResourceClaimStatus: in.Pod.Status.ExtendedResourceClaimStatus,
		VolumeHealth:                in.VolumeHealth,
	}
	if s.StartTime == nil {
		now := metav1.NewTime(in.Now)
		s.StartTime = &now
	}
	return s
}

// addresses sets the IPs of the node and the pod. A pod without a sandbox keeps its last IPs.
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
