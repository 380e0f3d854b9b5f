package agent

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/config"
	"swiftlet/internal/node"
	"swiftlet/internal/resource/topology"
)

func (a *Agent) makeCgroups() error {
	kc := &a.cfg.Kubelet
	hierarchy, err := cgroup.Detect()
	if err != nil {
		return err
	}
	c := cgroup.Config{
		Driver: cgroup.Driver(a.machine.cgroupDriver),
		Root:   kc.CgroupRoot,
		Limits: cgroup.Limits{
			CFSQuota:  *kc.CPUCFSQuota,
			CFSPeriod: kc.CPUCFSQuotaPeriod.Duration,
			PodPIDs:   *kc.PodPidsLimit,
		},
	}
	if a.cfg.Features.MemoryQoS && hierarchy.Version == 2 {
		c.MemoryQOS = &cgroup.MemoryQOS{
			Tiered:           kc.MemoryReservationPolicy == kubelet.TieredReservationMemoryReservationPolicy,
			ThrottlingFactor: kc.MemoryThrottlingFactor,
		}
	}
	if c.QOSReserve, err = a.qosReserve(); err != nil {
		return err
	}
	a.machine.cgroups, err = cgroup.New(c, cgroup.Deps{
		Hierarchy: hierarchy,
		Alone:     func(p *v1.Pod) bool { return a.given.cpus.PodAlone(p) },
		Took:      a.metrics.Cgroup(hierarchy.Version),
		Log:       a.log,
	})
	if err != nil {
		return err
	}
	a.enterCgroups()
	return nil
}

// enterCgroups moves this process, and those that are in no group, to where the configuration
// wants them. A node works without.
func (a *Agent) enterCgroups() {
	kc := &a.cfg.Kubelet
	if kc.KubeletCgroups != "" {
		if err := a.machine.cgroups.Enter(kc.KubeletCgroups, os.Getpid()); err != nil {
			a.log.Warn("the agent is not in its cgroup", "kubeletCgroups", kc.KubeletCgroups, "err", err)
		}
	}
	if kc.SystemCgroups != "" {
		stray, err := a.machine.cgroups.Stray()
		if err == nil {
			err = a.machine.cgroups.Enter(kc.SystemCgroups, stray...)
		}
		if err != nil {
			a.log.Warn("some processes of the system are in no cgroup", "systemCgroups", kc.SystemCgroups, "err", err)
		}
	}
}

// qosReserve is nil unless memory is kept from lower QoS classes.
func (a *Agent) qosReserve() (*cgroup.QOSReserve, error) {
	share, ok := a.cfg.Kubelet.QOSReserved["memory"]
	if !ok || !a.cfg.Features.QOSReserved {
		return nil, nil
	}
	percent, err := strconv.ParseInt(strings.TrimSuffix(share, "%"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("qosReserved.memory: %w", err)
	}
	memory, err := a.podMemory()
	return &cgroup.QOSReserve{Percent: percent, Memory: memory}, err
}

// podMemory is what there is for all pods together, before anything is evicted.
func (a *Agent) podMemory() (int64, error) {
	reserved, err := reservedOf(a.cfg)
	return a.machine.facts.MemoryBytes - reserved.Kube.Memory().Value() - reserved.System.Memory().Value(), err
}

// reservationsOf are the groups of the system that are to be bounded, in the order in which
// the reference kubelet does it.
func reservationsOf(kc *kubelet.KubeletConfiguration, reserved node.Reserved) (all []node.Reservation) {
	system := node.Reservation{Name: "System Reserved", Group: kc.SystemReservedCgroup, Amounts: reserved.System}
	kube := node.Reservation{Name: "Kube Reserved", Group: kc.KubeReservedCgroup, Amounts: reserved.Kube}
	for _, suffix := range []string{"", "-compressible"} {
		system.Compressible, kube.Compressible = suffix != "", suffix != ""
		if slices.Contains(kc.EnforceNodeAllocatable, "system-reserved"+suffix) {
			all = append(all, system)
		}
		if slices.Contains(kc.EnforceNodeAllocatable, "kube-reserved"+suffix) {
			all = append(all, kube)
		}
	}
	return all
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
	if list := cfg.Kubelet.ReservedSystemCPUs; list != "" {
		cpus, err := topology.ParseList(list)
		if err != nil {
			return node.Reserved{}, fmt.Errorf("reservedSystemCPUs: %w", err)
		}
		delete(kube, v1.ResourceCPU)
		system[v1.ResourceCPU] = *resource.NewQuantity(int64(cpus.Size()), resource.DecimalSI)
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
