package cri

import (
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/clip"
	"swiftlet/internal/pod"
)

// Labels and annotations by which a kubelet finds its objects in the runtime. They are those of
// the reference kubelet, so that either kubelet can take over the other's pods.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"

	AnnotationContainerHash = "io.kubernetes.container.hash"
	AnnotationRestartCount  = "io.kubernetes.container.restartCount"
)

// RefFrom returns the pod of an object from its labels; false without a UID, for objects of others.
func RefFrom(labels map[string]string) (ref pod.Ref, ok bool) {
	ref = pod.Ref{
		Namespace: labels[LabelPodNamespace],
		Name:      labels[LabelPodName],
		UID:       types.UID(labels[LabelPodUID]),
	}
	return ref, ref.UID != ""
}

// ObservedFrom converts the status of one pod's sandboxes and containers. at is when they were
// read.
func ObservedFrom(sandboxes []*runtimeapi.PodSandboxStatus, containers []*runtimeapi.ContainerStatus, at time.Time) pod.Observed {
	observed := pod.Observed{At: at}
	for _, s := range sandboxes {
		observed.Ref, _ = RefFrom(s.Labels)
		observed.Sandboxes = append(observed.Sandboxes, SandboxFrom(s))
	}
	for _, c := range containers {
		if observed.UID == "" {
			observed.Ref, _ = RefFrom(c.Labels)
		}
		observed.Containers = append(observed.Containers, ContainerFrom(c))
	}
	observed.Sort()
	return observed
}

// SandboxFrom converts one sandbox.
func SandboxFrom(s *runtimeapi.PodSandboxStatus) pod.Sandbox {
	network := s.GetLinux().GetNamespaces().GetOptions().GetNetwork()
	return pod.Sandbox{
		ID:             s.Id,
		Attempt:        s.GetMetadata().GetAttempt(),
		CreatedAt:      time.Unix(0, s.CreatedAt),
		Ready:          s.State == runtimeapi.PodSandboxState_SANDBOX_READY,
		IPs:            ipsOf(s.Network),
		HostNetwork:    s.GetLinux().GetNamespaces().GetOptions() != nil && network == runtimeapi.NamespaceMode_NODE,
		RuntimeHandler: s.RuntimeHandler,
	}
}

// ipsOf lists the sandbox's IPs, the primary one first. If one is invalid, it returns none: one
// IP of a dual-stack pod is worse than none yet.
func ipsOf(network *runtimeapi.PodSandboxNetworkStatus) []string {
	if network.GetIp() == "" {
		return nil
	}
	ips := []string{network.Ip}
	for _, more := range network.AdditionalIps {
		ips = append(ips, more.Ip)
	}
	for _, ip := range ips {
		if _, err := netip.ParseAddr(ip); err != nil {
			return nil
		}
	}
	return ips
}

// ContainerFrom converts one container.
func ContainerFrom(s *runtimeapi.ContainerStatus) pod.Container {
	c := pod.Container{
		ID:           s.Id,
		Name:         s.Labels[LabelContainerName],
		RestartCount: restartCount(s),
		State:        StateFrom(s.State),
		CreatedAt:    time.Unix(0, s.CreatedAt),
		Image:        s.GetImage().GetImage(),
		ImageID:      s.ImageRef,
		Hash:         s.Annotations[AnnotationContainerHash],
		LogPath:      s.LogPath,
		Annotations:  s.Annotations,
		User:         userFrom(s.User),
		StopSignal:   signalFrom(s.StopSignal),
		Resources:    resourcesFrom(s.Resources.GetLinux()),
		Mounts:       mountsFrom(s.Mounts),
	}
	if c.State != pod.Created {
		c.StartedAt = time.Unix(0, s.StartedAt)
	}
	if c.State == pod.Exited {
		c.FinishedAt = time.Unix(0, s.FinishedAt)
		c.ExitCode, c.Reason, c.Message = s.ExitCode, clip.Text(s.Reason, clip.Name), clip.Text(s.Message, clip.Message)
	}
	return c
}

// restartCount prefers the annotation: the attempt is only part of the container's name.
func restartCount(s *runtimeapi.ContainerStatus) int {
	if n, err := strconv.ParseInt(s.Annotations[AnnotationRestartCount], 10, 32); err == nil && n >= 0 {
		return int(n)
	}
	return int(min(s.GetMetadata().GetAttempt(), math.MaxInt32))
}

// StateFrom converts a container's state.
func StateFrom(s runtimeapi.ContainerState) pod.ContainerState {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return pod.Created
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return pod.Running
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return pod.Exited
	}
	return pod.Unknown
}

func userFrom(u *runtimeapi.ContainerUser) *v1.ContainerUser {
	linux := u.GetLinux()
	if linux == nil {
		return nil
	}
	return &v1.ContainerUser{Linux: &v1.LinuxContainerUser{
		UID: linux.Uid, GID: linux.Gid, SupplementalGroups: linux.SupplementalGroups,
	}}
}

// signalFrom converts a stop signal. CRI spells out the signs in real-time signals:
// SIGNAL_SIGRTMINPLUS1 is SIGRTMIN+1.
func signalFrom(s runtimeapi.Signal) *v1.Signal {
	// The API server rejects a status with a signal that has no name.
	if _, known := runtimeapi.Signal_name[int32(s)]; !known || s == runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		return nil
	}
	name := strings.NewReplacer("SIGNAL_", "", "MINPLUS", "MIN+", "MAXMINUS", "MAX-").Replace(s.String())
	signal := v1.Signal(name)
	return &signal
}

// The kernel's CPU shares: 1024 per CPU, and at least two.
const (
	sharesPerCPU = 1024
	minShares    = 2
	milliPerCPU  = 1000
)

func resourcesFrom(r *runtimeapi.LinuxContainerResources) *pod.ContainerResources {
	if r == nil {
		return nil
	}
	out := pod.ContainerResources{CPUs: r.CpusetCpus}
	if r.CpuPeriod > 0 && r.CpuQuota > 0 && r.CpuQuota < math.MaxInt64/milliPerCPU {
		out.CPULimit = resource.NewMilliQuantity(r.CpuQuota*milliPerCPU/r.CpuPeriod, resource.DecimalSI)
	}
	if r.CpuShares >= minShares && r.CpuShares < math.MaxInt64/milliPerCPU {
		milli := int64(math.Ceil(float64(r.CpuShares*milliPerCPU) / sharesPerCPU))
		out.CPURequest = resource.NewMilliQuantity(milli, resource.DecimalSI)
	}
	if r.MemoryLimitInBytes > 0 {
		out.MemoryLimit = resource.NewQuantity(r.MemoryLimitInBytes, resource.BinarySI)
	}
	if out == (pod.ContainerResources{}) {
		return nil
	}
	return &out
}

func mountsFrom(mounts []*runtimeapi.Mount) []pod.Mount {
	var out []pod.Mount
	for _, m := range mounts {
		out = append(out, pod.Mount{
			HostPath:          m.HostPath,
			ContainerPath:     m.ContainerPath,
			ReadOnly:          m.Readonly,
			RecursiveReadOnly: m.RecursiveReadOnly,
			Image:             m.GetImage().GetImage(),
		})
	}
	return out
}
