package agent

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/node"
)

func (a *Agent) makeCgroups() error {
	kc := &a.cfg.Kubelet
	hierarchy, err := cgroup.Detect()
	if err != nil {
		return err
	}
	c := cgroup.Config{
		Driver: a.cgroupDriver(),
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
	reserved, err := node.ReservedFrom(&a.cfg.Kubelet, a.cfg.Flags.AllocatableIgnoreEviction)
	return reserved.Memory(a.machine.facts.MemoryBytes), err
}
