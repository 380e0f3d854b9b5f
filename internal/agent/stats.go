package agent

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/stats"
)

// makeStats makes what tells how much is used.
func (a *Agent) makeStats() (err error) {
	facts, kc := &a.machine.facts, &a.cfg.Kubelet
	machine := stats.Machine{
		CPUs:       facts.CPUs,
		Memory:     uint64(facts.MemoryBytes),
		Swap:       uint64(facts.SwapBytes),
		MaxPIDs:    facts.MaxPIDs,
		MachineID:  facts.MachineID,
		SystemUUID: facts.SystemUUID,
		BootID:     facts.BootID,
		Kernel:     facts.Kernel,
		OSImage:    facts.OSImage,
	}
	for _, bytes := range facts.Hugepages {
		machine.HugePages += uint64(bytes)
	}
	a.pods.stats, err = stats.New(stats.Config{
		NodeName:        a.name,
		RootDir:         a.cfg.Flags.RootDir,
		PodLogsDir:      kc.PodLogsDir,
		VolumePeriod:    kc.VolumeStatsAggPeriod.Duration,
		Pressure:        a.cfg.Gate("KubeletPSI"),
		SparesHugePages: a.cfg.Features.HugepageAwareEviction,
		PodsGroup:       a.podsGroup(),
		System:          a.systemGroups(),
		Machine:         machine,
	}, stats.Deps{
		Cgroups:  a.machine.cgroups,
		Runtime:  a.cri,
		Pods:     a.pods.observer.List,
		Volumes:  a.ownVolumes,
		Measured: a.metrics.VolumesMeasured(),
		Clock:    a.clock,
		Log:      a.log,
	})
	return err
}

func (a *Agent) ownVolumes(uid types.UID) []stats.Volume {
	var list []stats.Volume
	for _, v := range a.pods.volumes.OwnedVolumes(uid) {
		one := stats.Volume{Name: v.Name, Dir: v.HostPath, Local: v.Local, Claim: v.Claim, Driver: v.Driver}
		if v.Used != nil {
			one.Counted = func() (bytes, inodes uint64, ok bool) {
				used, ok := v.Used()
				return used.Bytes, used.Inodes, ok
			}
		}
		if v.Measure != nil {
			one.Measure = func(ctx context.Context) (stats.VolumeUsage, error) {
				u, err := v.Measure(ctx)
				return stats.VolumeUsage{
					CapacityBytes: u.CapacityBytes, AvailableBytes: u.AvailableBytes, UsedBytes: u.UsedBytes,
					Inodes: u.Inodes, InodesFree: u.InodesFree, InodesUsed: u.InodesUsed,
				}, err
			}
		}
		list = append(list, one)
	}
	return list
}

// systemGroups are the groups that the configuration names for the node's own programs.
// This program's own is found out where none is named.
func (a *Agent) systemGroups() []stats.SystemGroup {
	agent := a.cfg.Kubelet.KubeletCgroups
	if agent == "" {
		agent = a.machine.cgroups.Own()
	}
	var groups []stats.SystemGroup
	for _, g := range []stats.SystemGroup{
		{Name: statsapi.SystemContainerKubelet, Path: agent, Start: a.clock.Now()},
		{Name: statsapi.SystemContainerRuntime, Path: a.cfg.Flags.RuntimeCgroups},
		{Name: statsapi.SystemContainerMisc, Path: a.cfg.Kubelet.SystemCgroups},
	} {
		if g.Path != "" && g.Path != "/" {
			g.Path = "/" + strings.Trim(g.Path, "/")
			groups = append(groups, g)
		}
	}
	return groups
}

// startTime tells when this process began, which is when its counters did.
func startTime() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "process_start_time_seconds",
		Help: "[ALPHA] Start time of the process since unix epoch in seconds.",
	}, func() float64 {
		self, err := procfs.Self()
		if err != nil {
			return 0
		}
		stat, err := self.Stat()
		if err != nil {
			return 0
		}
		began, err := stat.StartTime()
		if err != nil {
			return 0
		}
		return began
	})
}
