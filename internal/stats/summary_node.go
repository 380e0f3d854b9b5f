package stats

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// nodeStats is the part of the node that both summaries have.
func (s *Stats) nodeStats(r *reading) statsapi.NodeStats {
	out := statsapi.NodeStats{
		NodeName:  s.cfg.NodeName,
		StartTime: metav1.NewTime(s.boot),
		CPU:       s.cpuStats(&r.root),
		Memory:    s.memoryStats(&r.root),
		Swap:      swapStats(&r.root),
	}
	if available := out.Memory.AvailableBytes; s.cfg.ExcludeHugePages && available != nil {
		*available -= min(*available, s.cfg.Machine.HugePages)
	}
	addSystem := func(name string, u *usage) *statsapi.ContainerStats {
		out.SystemContainers = append(out.SystemContainers, statsapi.ContainerStats{
			Name:      name,
			StartTime: metav1.NewTime(u.created),
			CPU:       s.cpuStats(u),
			Memory:    s.memoryStats(u),
			Swap:      swapStats(u),
		})
		return &out.SystemContainers[len(out.SystemContainers)-1]
	}
	for i := range r.system {
		g := &r.system[i]
		if one := addSystem(g.Name, &g.usage); !g.Start.IsZero() {
			one.StartTime = metav1.NewTime(g.Start)
		}
	}
	if len(r.parents) > 0 {
		addSystem(statsapi.SystemContainerPods, &r.parents[0])
	}
	return out
}

// addNodeDetails adds what only the full summary has of the node.
func (s *Stats) addNodeDetails(out *statsapi.NodeStats, r *reading, d *disks) error {
	out.IO = s.ioStats(&r.root)
	for i := range r.system {
		out.SystemContainers[i].IO = s.ioStats(&r.system[i].usage)
	}
	if len(r.parents) > 0 {
		out.SystemContainers[len(r.system)].IO = s.ioStats(&r.parents[0])
	}
	out.Network = networkStats(r.network, r.at)
	out.Fs = d.node.stats(r.at)
	out.Fs.UsedBytes, out.Fs.InodesUsed = &d.node.used, &d.node.inodesUsed
	out.Runtime = &statsapi.RuntimeStats{ImageFs: d.images, ContainerFs: d.containers}
	tasks, err := runningTasks(newFileReader())
	if err != nil {
		return err
	}
	out.Rlimit = &statsapi.RlimitStats{Time: metav1.NewTime(s.deps.Clock.Now()), NumOfRunningProcesses: &tasks}
	if limit := s.cfg.Machine.MaxPIDs; limit > 0 {
		out.Rlimit.MaxPID = &limit
	}
	return nil
}
