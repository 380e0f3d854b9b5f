package agent

import (
	"fmt"
	"net"
	"os"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/cri"
	"swiftlet/internal/dns"
	"swiftlet/internal/host"
	"swiftlet/internal/iptables"
	"swiftlet/internal/metrics"
	"swiftlet/internal/node"
	"swiftlet/internal/oom"
	"swiftlet/internal/resource"
	"swiftlet/internal/resource/cpu"
	"swiftlet/internal/runtime"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/worker"
)

// machine has the hardware of the node, its state, and its cgroup tree.
type machine struct {
	hardware node.Machine
	nodeIPs  []net.IP
	// podMemory is what all pods together may use, in bytes, without eviction thresholds.
	podMemory int64
	node      *node.State
	// attachments is nil without an API server.
	attachments *node.Attachments
	selinux     bool // enabled in the kernel

	*resource.Exclusive
	meters metrics.Resources

	workers *worker.Table // the pods on it
	cgroups *cgroup.Tree
	groups  cgroup.PodCgroups
	dns     *dns.Resolver
}

// newMachine reads the machine and makes its state, its cgroup tree and its name resolution.
func newMachine(b *base, a *api, r runtimeClient) (_ *machine, err error) {
	m := &machine{workers: worker.NewTable(), meters: b.metrics.Resources()}
	// A new machine does not have it yet, and the parts below use it.
	if err := os.MkdirAll(b.cfg.Flags.RootDir, 0o750); err != nil {
		return nil, fmt.Errorf("create root directory: %w", err)
	}
	if m.hardware, err = node.ReadMachine("/"); err != nil {
		return nil, err
	}
	mounts.WarnIfSwappable(m.hardware.SwapBytes > 0, b.cfg.Flags.RootDir, a.warnNode)
	if m.selinux, err = mounts.SELinuxEnabled(); err != nil {
		return nil, err
	}
	hierarchy, err := b.around.Cgroups()
	if err != nil {
		return nil, err
	}
	cfg, err := node.ConfigFrom(b.cfg, b.nodeName)
	if err != nil {
		return nil, err
	}
	cfg.CgroupVersion, cfg.SwiftletVersion = hierarchy.Version, b.opts.Version
	cfg.OnlyNode = cfg.Standalone || b.opts.OnlyNode
	m.nodeIPs, m.podMemory = cfg.NodeIPs, cfg.Reserved.Memory(m.hardware.MemoryBytes)
	if m.node, err = node.NewState(cfg, m.hardware, b.log); err != nil {
		return nil, err
	}
	if a.caches != nil {
		m.attachments = node.NewAttachments(a.caches.Node.Watched, b.hub.reportNode, func() { b.hub.volumesReported.Publish(struct{}{}) })
	}
	if err := m.makeExclusive(b, a, r.cri, cfg.Reserved); err != nil {
		return nil, err
	}
	if err := m.makeCgroups(b, r.identity, hierarchy); err != nil {
		return nil, err
	}
	m.dns, err = dns.New(dns.ConfigFrom(&b.cfg.Kubelet, cfg.OnlyNode, m.nodeIPs), dns.Deps{Events: a.events, Node: a.node, Log: b.log})
	if err != nil {
		return nil, err
	}
	b.add("dns", m.dns.Run)
	if err := newIPTables(b); err != nil {
		return nil, err
	}
	return m, newOOMWatcher(b, a, m)
}

// makeExclusive makes the managers of exclusive CPUs and memory.
func (m *machine) makeExclusive(b *base, a *api, client *cri.Client, reserved node.Reserved) (err error) {
	amounts, err := reserved.Exclusive(m.hardware.MemoryBytes)
	if err != nil {
		return err
	}
	m.Exclusive, err = resource.NewExclusive(b.cfg, m.hardware.MemoryBytes, amounts, resource.ExclusiveDeps{
		Running:       func() ([]cpu.Running, error) { return cpu.ListRunning(client) },
		SharedChanged: func() { b.hub.syncPods.Publish(struct{}{}) },
		CPUs:          m.meters.CPUs, MemoryRequests: m.meters.MemoryRequests, MemoryErrors: m.meters.MemoryErrors,
		Warn: a.warnNode, Log: b.log,
	})
	if err == nil {
		b.metrics.CPUs(m.CPUs.Usage)
	}
	return err
}

func (m *machine) makeCgroups(b *base, identity cri.Identity, hierarchy cgroup.Hierarchy) error {
	kc := &b.cfg.Kubelet
	cfg, err := cgroup.ConfigFrom(kc, cgroup.Node{
		Driver: cgroup.DriverFor(identity.CgroupDriver, kc.CgroupDriver, b.log), Version: hierarchy.Version, PodMemory: m.podMemory,
		MemoryQoS: b.cfg.Features.MemoryQoS, QOSReserved: b.cfg.Features.QOSReserved,
	})
	if err != nil {
		return err
	}
	m.cgroups, err = cgroup.New(cfg, cgroup.Deps{
		Hierarchy: hierarchy, HasExclusiveCPUs: m.CPUs.PodHasExclusiveCPUs,
		Duration: b.metrics.Cgroup(hierarchy.Version), Protected: b.metrics.MemoryQoS(b.cfg.Features.MemoryQoS), Clock: b.clock, Log: b.log,
	})
	if err != nil {
		return err
	}
	m.cgroups.MoveConfiguredProcesses(kc, b.log)
	host.LimitMemory(hierarchy.OwnMemoryLimit, b.log)
	m.groups = b.around.PodCgroups(*kc.CgroupsPerQOS, m.cgroups, m.workers.Active)
	return nil
}

// newIPTables adds the part that keeps the iptables chains that other programs expect.
func newIPTables(b *base) error {
	if !*b.cfg.Kubelet.MakeIPTablesUtilChains {
		return nil
	}
	k, err := iptables.New(iptables.Deps{Clock: b.clock, Log: b.log})
	return b.addUnless(err, "iptables", k.Run)
}

// newOOMWatcher adds the watcher of system OOMs.
func newOOMWatcher(b *base, a *api, m *machine) error {
	log, err := b.around.KernelLog(oom.RulesFrom(b.cfg, m.hardware.UserNamespace), b.log)
	if log == nil {
		return err
	}
	cfg := oom.Config{RootDir: b.cfg.Flags.RootDir, BootID: m.hardware.BootID}
	w, err := oom.New(cfg, oom.Deps{KernelLog: log, Events: a.events, Node: a.node, Log: b.log})
	return b.addUnless(err, "OOM watcher", w.Run)
}

// kernel has the properties of the kernel that containers depend on.
func (m *machine) kernel() runtime.Kernel {
	return runtime.Kernel{
		CgroupVersion: m.cgroups.Version(), LimitsSwap: m.cgroups.CanLimitSwap(),
		MemoryBytes: m.hardware.MemoryBytes, SwapBytes: m.hardware.SwapBytes, PodMemory: m.podMemory, SELinux: m.selinux,
	}
}
