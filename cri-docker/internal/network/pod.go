package network

import (
	"fmt"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Pod is a sandbox to connect.
type Pod struct {
	ID     string
	Config *runtimeapi.PodSandboxConfig
}

// portMapping is the capability portMappings of CNI.
type portMapping struct {
	HostPort      int32  `json:"hostPort"`
	ContainerPort int32  `json:"containerPort"`
	Protocol      string `json:"protocol"`
	HostIP        string `json:"hostIP"`
}

// bandwidth is the capability bandwidth of CNI: bits per second, and bits.
type bandwidth struct {
	IngressRate  uint64 `json:"ingressRate,omitempty"`
	IngressBurst uint64 `json:"ingressBurst,omitempty"`
	EgressRate   uint64 `json:"egressRate,omitempty"`
	EgressBurst  uint64 `json:"egressBurst,omitempty"`
}

const maxBurst = 1<<32 - 1 // of the kernel's token bucket, in bits

// runtimeConf is what plugins get to know. libcni passes a capability only to plugins that have it.
func (p Pod) runtimeConf(netns string) (*libcni.RuntimeConf, error) {
	m := p.Config.GetMetadata()
	capabilities := map[string]any{}
	if ports := p.portMappings(); len(ports) > 0 {
		capabilities["portMappings"] = ports
	}
	limits, err := p.bandwidth()
	if err != nil {
		return nil, err
	}
	if limits != nil {
		capabilities["bandwidth"] = limits
	}
	if dns := p.Config.GetDnsConfig(); dns != nil {
		capabilities["dns"] = map[string][]string{"servers": dns.GetServers(), "searches": dns.GetSearches(), "options": dns.GetOptions()}
	}
	return &libcni.RuntimeConf{
		ContainerID: p.ID, NetNS: netns, IfName: ifName, CapabilityArgs: capabilities,
		Args: [][2]string{
			{"IgnoreUnknown", "1"},
			{"K8S_POD_NAMESPACE", m.GetNamespace()}, {"K8S_POD_NAME", m.GetName()},
			{"K8S_POD_INFRA_CONTAINER_ID", p.ID}, {"K8S_POD_UID", m.GetUid()},
		},
	}, nil
}

func (p Pod) portMappings() []portMapping {
	var ports []portMapping
	for _, m := range p.Config.GetPortMappings() {
		if m.GetHostPort() > 0 {
			ports = append(ports, portMapping{HostPort: m.GetHostPort(), ContainerPort: m.GetContainerPort(),
				Protocol: strings.ToLower(m.GetProtocol().String()), HostIP: m.GetHostIp()})
		}
	}
	return ports
}

// bandwidth reads the annotations that Kubernetes documents for traffic shaping.
func (p Pod) bandwidth() (*bandwidth, error) {
	var b bandwidth
	for name, to := range map[string]struct{ rate, burst *uint64 }{
		"kubernetes.io/ingress-bandwidth": {&b.IngressRate, &b.IngressBurst},
		"kubernetes.io/egress-bandwidth":  {&b.EgressRate, &b.EgressBurst},
	} {
		text, ok := p.Config.GetAnnotations()[name]
		if !ok {
			continue
		}
		rate, err := resource.ParseQuantity(text)
		if err != nil || rate.Value() <= 0 {
			return nil, fmt.Errorf("annotation %s: %q is not a bandwidth such as 10M", name, text)
		}
		*to.rate, *to.burst = uint64(rate.Value()), maxBurst
	}
	if b == (bandwidth{}) {
		return nil, nil
	}
	return &b, nil
}
