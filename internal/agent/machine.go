package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/config"
	"swiftlet/internal/dns"
	"swiftlet/internal/node"
)

// machine is what the node is made of.
type machine struct {
	runtimeName  string
	cgroupDriver string

	facts   node.Machine
	cgroups *cgroup.Tree
	node    *node.Node
	dns     *dns.Resolver
	nodeIPs []net.IP
	// attachments is nil without an API server.
	attachments *attachments

	parts []part
}

// makeMachine reads the machine and makes its cgroup tree, its Node and its name service.
func (a *Agent) makeMachine(context.Context) (err error) {
	m := &a.machine
	if m.facts, err = node.ReadMachine("/"); err != nil {
		return err
	}
	if m.nodeIPs, err = parseIPs(a.cfg.Flags.NodeIP); err != nil {
		return err
	}
	if err := a.makeCgroups(); err != nil {
		return err
	}
	if err := a.makeNode(); err != nil {
		return err
	}
	m.parts = append(m.parts, part{"node", m.node.Run})
	return a.makeDNS()
}

func (a *Agent) makeCgroups() error {
	kc := &a.cfg.Kubelet
	hierarchy, err := cgroup.Detect()
	if err != nil {
		return err
	}
	a.machine.cgroups, err = cgroup.New(cgroup.Config{
		Driver: cgroup.Driver(a.machine.cgroupDriver),
		Root:   kc.CgroupRoot,
		Limits: cgroup.Limits{
			CFSQuota:  *kc.CPUCFSQuota,
			CFSPeriod: kc.CPUCFSQuotaPeriod.Duration,
			PodPIDs:   *kc.PodPidsLimit,
		},
	}, cgroup.Deps{Hierarchy: hierarchy, Took: a.metrics.Cgroup(hierarchy.Version), Log: a.log})
	return err
}

func (a *Agent) makeNode() error {
	kc, flags := &a.cfg.Kubelet, &a.cfg.Flags
	reserved, err := reservedOf(a.cfg)
	if err != nil {
		return err
	}
	enforcePods := false
	for _, e := range kc.EnforceNodeAllocatable {
		enforcePods = enforcePods || e == "pods"
	}
	deps := node.Deps{
		Machine: a.machine.facts,
		Runtime: a.cri,
		Clock:   a.clock,
		Log:     a.log,
		Events:  a.api.events,
		Health:  a.observed,
		Enforce: a.machine.cgroups.EnsureNode,
		PodCIDR: a.cri.UpdateRuntimeConfig,
		Jitter:  rand.Float64,
		Meters:  a.metrics.Node(a.name, a.began, bootTime(a.began)),

		Addressed: a.addressed,
		Devices:   a.deviceAmounts,
		Pressure:  a.pressure,
	}
	if c := a.api.clients; c != nil {
		deps.Client, deps.Heartbeat, deps.Watched, deps.Hung = c.Kube, c.Heartbeat, a.watchedNode, c.CloseConnections
		a.machine.attachments = &attachments{agent: a}
		deps.VolumesInUse, deps.VolumesReported = a.machine.attachments.list, a.machine.attachments.written
	}
	a.machine.node, err = node.New(node.Config{
		NodeName:                a.name,
		Hostname:                a.hostname,
		NodeIPs:                 a.machine.nodeIPs,
		Labels:                  flags.NodeLabels,
		Taints:                  kc.RegisterWithTaints,
		ProviderID:              kc.ProviderID,
		ExternalCloud:           flags.CloudProvider == "external",
		RegisterNode:            *kc.RegisterNode,
		ControllerManagedAttach: *kc.EnableControllerAttachDetach,
		MaxPods:                 int(kc.MaxPods),
		PodsPerCore:             int(kc.PodsPerCore),
		Reserved:                reserved,
		EnforceAllocatable:      enforcePods,
		StatusUpdateFrequency:   kc.NodeStatusUpdateFrequency.Duration,
		StatusReportFrequency:   kc.NodeStatusReportFrequency.Duration,
		LeaseDuration:           seconds(kc.NodeLeaseDurationSeconds),
		MaxImages:               int(*kc.NodeStatusMaxImages),
		Port:                    kc.Port,
		Version:                 config.KubernetesVersion,
		Gate:                    a.cfg.Gate,
		RootDir:                 flags.RootDir,
		CgroupVersion:           a.machine.cgroups.Version(),
	}, deps)
	return err
}

func (a *Agent) makeDNS() (err error) {
	kc := &a.cfg.Kubelet
	var addrs []netip.Addr
	for _, ip := range a.machine.nodeIPs {
		if addr, ok := netip.AddrFromSlice(ip); ok {
			addrs = append(addrs, addr.Unmap())
		}
	}
	resolvConf := ""
	if kc.ResolverConfig != nil {
		resolvConf = *kc.ResolverConfig
	}
	a.machine.dns, err = dns.New(dns.Config{
		ClusterDNS:    kc.ClusterDNS,
		NoCluster:     a.api.clients == nil,
		ClusterDomain: kc.ClusterDomain,
		ResolvConf:    resolvConf,
		NodeIPs:       addrs,
	}, dns.Deps{Events: a.api.events, Node: a.nodeRef(), Log: a.log})
	return err
}

// nodeUID is the owner of mirror pods, once it is known.
func (a *Agent) nodeUID() (types.UID, bool) {
	n, err := a.watchedNode()
	if err != nil || n.DeletionTimestamp != nil {
		return "", false
	}
	return n.UID, true
}

// hostIPs are the node's addresses as pods know them.
func (a *Agent) hostIPs() []string {
	var ips []string
	for _, ip := range a.machine.node.HostIPs() {
		ips = append(ips, ip.String())
	}
	return ips
}

// reservedOf reads what is kept from pods.
func reservedOf(cfg *config.Config) (node.Reserved, error) {
	kube, err := quantities("kubeReserved", cfg.Kubelet.KubeReserved)
	if err != nil {
		return node.Reserved{}, err
	}
	system, err := quantities("systemReserved", cfg.Kubelet.SystemReserved)
	if err != nil {
		return node.Reserved{}, err
	}
	reserved := node.Reserved{Kube: kube, System: system, EvictionHard: cfg.Kubelet.EvictionHard}
	if cfg.Flags.AllocatableIgnoreEviction {
		reserved.EvictionHard = nil
	}
	return reserved, nil
}

func quantities(field string, amounts map[string]string) (v1.ResourceList, error) {
	list := v1.ResourceList{}
	for name, amount := range amounts {
		q, err := resource.ParseQuantity(amount)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %q: %w", field, name, amount, err)
		}
		list[v1.ResourceName(name)] = q
	}
	return list, nil
}

func parseIPs(list string) ([]net.IP, error) {
	var ips []net.IP
	for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		ip := net.ParseIP(strings.TrimSpace(text))
		if ip == nil {
			return nil, fmt.Errorf("--node-ip: %q is not an address", text)
		}
		ips = append(ips, ip)
	}
	return ips, nil
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
