package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/config"
	"swiftlet/internal/cri"
	"swiftlet/internal/dns"
	"swiftlet/internal/host"
	"swiftlet/internal/node"
	"swiftlet/internal/shutdown"
	"swiftlet/internal/volume/mounts"
)

// machine is what the node is made of.
type machine struct {
	runtime cri.Identity

	facts   node.Machine
	cgroups *cgroup.Tree
	node    *node.Node
	dns     *dns.Resolver
	// shutdown ends the pods before the machine goes down.
	shutdown *shutdown.Manager
	nodeIPs  []net.IP
	// labels: SELinux labels files.
	labels bool
	// attachments is nil without an API server.
	attachments *attachments

	parts []part
}

// makeMachine reads the machine and makes its cgroup tree, its Node and its name service.
func (a *Agent) makeMachine(context.Context) (err error) {
	m := &a.machine
	// A new machine has none yet; those that come after measure it and write into it.
	if err := os.MkdirAll(a.cfg.Flags.RootDir, 0o750); err != nil {
		return fmt.Errorf("make the agent's folder: %w", err)
	}
	if m.facts, err = node.ReadMachine("/"); err != nil {
		return err
	}
	if m.nodeIPs, err = parseIPs(a.cfg.Flags.NodeIP); err != nil {
		return err
	}
	if m.labels, err = mounts.SELinux(); err != nil {
		return err
	}
	if err := a.makeCgroups(); err != nil {
		return err
	}
	if err := a.makeShutdown(); err != nil {
		return err
	}
	if err := a.makeOOM(); err != nil {
		return err
	}
	if err := a.makeNode(); err != nil {
		return err
	}
	m.parts = append(m.parts, part{"node", m.node.Run})
	if err := a.makeChains(); err != nil {
		return err
	}
	return a.makeDNS()
}

func (a *Agent) makeNode() error {
	kc, flags := &a.cfg.Kubelet, &a.cfg.Flags
	reserved, err := node.ReservedFrom(&a.cfg.Kubelet, a.cfg.Flags.AllocatableIgnoreEviction)
	if err != nil {
		return err
	}
	deps := node.Deps{
		Machine:         a.machine.facts,
		Runtime:         a.cri,
		Clock:           a.clock,
		Log:             a.log,
		Events:          a.api.events,
		Health:          a.observed,
		EnforceReserved: a.machine.cgroups.BoundReserved,
		PodCIDR:         a.cri.UpdateRuntimeConfig,
		Jitter:          rand.Float64,
		Meters:          a.metrics.Node(a.name, a.began, host.BootTime(a.began)),

		Addressed: a.addressed,
		Unready:   []func() error{func() error { return a.machine.shutdown.Err() }},
		Devices:   a.deviceAmounts,
		Pressure:  a.pressure,
	}
	if *kc.CgroupsPerQOS {
		deps.Enforce = a.machine.cgroups.EnsureNode
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
		EnforceAllocatable:      slices.Contains(kc.EnforceNodeAllocatable, "pods"),
		Reservations:            node.ReservationsFrom(kc, reserved),
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
	if err == nil && a.api.node != nil {
		a.api.node.OnRelist(a.machine.node.Relisted)
	}
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
