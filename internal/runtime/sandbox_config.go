package runtime

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
)

// sandboxConfig builds the CRI configuration of p's sandbox. attempt numbers the sandboxes of
// the pod; cgroupParent is the pod's cgroup. Its errors are shown to the user.
func (r *Runtime) sandboxConfig(p *v1.Pod, attempt uint32, cgroupParent string) (*runtimeapi.PodSandboxConfig, error) {
	dns, err := r.deps.DNS.PodDNS(p)
	if err != nil {
		return nil, err
	}
	hostname, err := r.deps.DNS.KernelHostname(p)
	if err != nil {
		return nil, err
	}
	security, err := r.sandboxSecurity(p)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: p.Name, Namespace: p.Namespace, Uid: string(p.UID), Attempt: attempt},
		Hostname:     hostname,
		LogDirectory: r.podLogDir(pod.RefOf(p)),
		DnsConfig:    dns,
		PortMappings: portMappings(p),
		Labels:       sandboxLabels(p),
		Annotations:  p.Annotations,
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    cgroupParent,
			SecurityContext: security,
			Sysctls:         r.sysctls(p),
			Overhead:        r.overhead(p),
			Resources:       r.sandboxResources(p),
		},
	}, nil
}

// portMappings lists the ports of the main containers. The runtime opens those with a host
// port; the others are informational.
func portMappings(p *v1.Pod) []*runtimeapi.PortMapping {
	var all []*runtimeapi.PortMapping
	for _, c := range p.Spec.Containers {
		seen := map[v1.ContainerPort]bool{}
		for _, port := range c.Ports {
			// Of ports with the same name, or unnamed ones that are equal, only the first is used.
			key := port
			if port.Name != "" {
				key = v1.ContainerPort{Name: port.Name}
			}
			if seen[key] {
				continue
			}
			seen[key] = true
			all = append(all, &runtimeapi.PortMapping{
				HostIp:        port.HostIP,
				HostPort:      port.HostPort,
				ContainerPort: port.ContainerPort,
				Protocol:      protocol(port.Protocol),
			})
		}
	}
	return all
}

func protocol(p v1.Protocol) runtimeapi.Protocol {
	switch p {
	case v1.ProtocolUDP:
		return runtimeapi.Protocol_UDP
	case v1.ProtocolSCTP:
		return runtimeapi.Protocol_SCTP
	}
	return runtimeapi.Protocol_TCP
}
