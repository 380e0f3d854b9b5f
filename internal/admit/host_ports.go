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
	requested := newPortSet(ports)
	for _, other := range others {
		for _, taken := range portsOf(other) {
			if requested.conflicts(taken) {
				return &mismatch{"NodePorts", "node(s) didn't have free ports for the requested pod ports"}
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

// portSet finds ports that conflict with those in the set: the same ones at the same address, where one
// address stands for all. A pod may have many ports.
type portSet map[hostPort]bool

// hostPort is a port of the node at one address, or with none at any of them.
type hostPort struct {
	number   int32
	protocol v1.Protocol
	ip       string
}

func newPortSet(ports []v1.ContainerPort) portSet {
	s := portSet{}
	for _, p := range ports {
		s[hostPort{p.HostPort, protocol(p), hostIP(p)}] = true
		s[hostPort{p.HostPort, protocol(p), ""}] = true
	}
	return s
}

func (s portSet) conflicts(p v1.ContainerPort) bool {
	at := func(ip string) bool { return s[hostPort{p.HostPort, protocol(p), ip}] }
	if hostIP(p) == anyIP {
		return at("")
	}
	return at(hostIP(p)) || at(anyIP)
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
