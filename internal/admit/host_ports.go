package admit

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// hostPorts requires that no other pod uses a host port of this one.
func hostPorts(p *v1.Pod, _ *v1.Node, others []*v1.Pod) *mismatch {
	ports := portsOf(p)
	if len(ports) == 0 {
		return nil
	}
	for _, other := range others {
		for _, taken := range portsOf(other) {
			for _, port := range ports {
				if conflict(port, taken) {
					return &mismatch{"NodePorts", "node(s) didn't have free ports for the requested pod ports"}
				}
			}
		}
	}
	return nil
}

// portsOf lists the host ports of regular containers and sidecars. Other init containers
// release theirs before the regular containers start.
func portsOf(p *v1.Pod) []v1.ContainerPort {
	var ports []v1.ContainerPort
	for c, kind := range pod.Containers(p) {
		if kind == pod.Ephemeral || kind == pod.Init && !pod.IsSidecar(c) {
			continue
		}
		for _, port := range c.Ports {
			if port.HostPort > 0 {
				ports = append(ports, port)
			}
		}
	}
	return ports
}

func conflict(a, b v1.ContainerPort) bool {
	return a.HostPort == b.HostPort && protocol(a) == protocol(b) &&
		(hostIP(a) == hostIP(b) || hostIP(a) == anyIP || hostIP(b) == anyIP)
}

const anyIP = "0.0.0.0"

func hostIP(p v1.ContainerPort) string {
	if p.HostIP == "" {
		return anyIP
	}
	return p.HostIP
}

func protocol(p v1.ContainerPort) v1.Protocol {
	if p.Protocol == "" {
		return v1.ProtocolTCP
	}
	return p.Protocol
}
