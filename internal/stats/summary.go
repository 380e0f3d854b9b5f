package stats

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/pod"
)

// Summary returns the usage of the node for the Summary API. It measures the volumes without a
// fresh result, which is expensive; frequent callers use UsageSummary. A volume that takes
// longer than maxWait shows its last result, or is omitted if it has none.
func (s *Stats) Summary(ctx context.Context) (*statsapi.Summary, error) {
	reported, fromRuntime, err := s.readRuntimePods(ctx)
	if err != nil {
		return nil, err
	}
	r, err := s.read(ctx, scope{summary, fromRuntime})
	if err != nil {
		return nil, err
	}
	disks, err := s.readDisks(ctx)
	if err != nil {
		return nil, err
	}
	out := &statsapi.Summary{Node: s.nodeStats(r), Pods: []statsapi.PodStats{}}
	if err := s.addNodeDetails(&out.Node, r, disks); err != nil {
		return nil, err
	}
	if fromRuntime {
		s.addRuntimePods(ctx, out, reported, disks)
	} else if err := s.addPods(ctx, out, r, disks); err != nil {
		return nil, err
	}
	s.logPartial(r)
	return out, nil
}

// addPods adds the pods of a reading with their storage.
func (s *Stats) addPods(ctx context.Context, out *statsapi.Summary, r *reading, disks *disks) error {
	containers, err := s.deps.Runtime.ListContainerStats(ctx, nil)
	if err != nil {
		return err
	}
	disks.addLayers(containers)
	var pods []*podUsage
	for i := range r.pods {
		pods = append(pods, &r.pods[i])
	}
	s.measureVolumesOf(ctx, pods)
	for _, p := range pods {
		if len(p.containers) == 0 {
			continue
		}
		stats := s.podStats(p)
		s.addPodDetails(&stats, p)
		s.addPodStorage(&stats, p, disks)
		out.Pods = append(out.Pods, stats)
	}
	return nil
}

// measureVolumesOf measures the volumes of all pods that the summary has.
func (s *Stats) measureVolumesOf(ctx context.Context, pods []*podUsage) {
	var volumes []pod.MeasurableVolume
	present := map[string]bool{}
	for _, p := range pods {
		for _, v := range s.deps.Volumes(p.UID) {
			volumes, present[v.Dir] = append(volumes, v), true
		}
	}
	s.measureVolumes(ctx, volumes, s.cfg.VolumePeriod)
	s.measurements.retain(present)
}

// UsageSummary is the part of Summary with CPU, memory and swap.
func (s *Stats) UsageSummary(ctx context.Context) (*statsapi.Summary, error) {
	reported, fromRuntime, err := s.readRuntimePods(ctx)
	if err != nil {
		return nil, err
	}
	r, err := s.read(ctx, scope{shallow, fromRuntime})
	if err != nil {
		return nil, err
	}
	out := &statsapi.Summary{Node: s.nodeStats(r), Pods: []statsapi.PodStats{}}
	for i := range r.pods {
		if len(r.pods[i].containers) > 0 {
			out.Pods = append(out.Pods, s.podStats(&r.pods[i]))
		}
	}
	for i := range reported {
		out.Pods = append(out.Pods, s.runtimeSummary(true).pod(&reported[i]))
	}
	s.logPartial(r)
	return out, nil
}

// logPartial logs what could not be read.
func (s *Stats) logPartial(r *reading) {
	if r.partialErr != nil {
		s.deps.Log.Warn("stats: read some cgroups failed", "err", r.partialErr)
	}
}

// podStats is the part of a pod that both summaries have.
func (s *Stats) podStats(p *podUsage) statsapi.PodStats {
	out := statsapi.PodStats{
		PodRef:    statsapi.PodReference{Name: p.Name, Namespace: p.Namespace, UID: string(p.UID)},
		StartTime: metav1.NewTime(p.start),
		CPU:       s.cpuStats(&p.usage),
		Memory:    s.memoryStats(&p.usage),
		Swap:      swapStats(&p.usage),
	}
	for i := range p.containers {
		c := &p.containers[i]
		out.Containers = append(out.Containers, statsapi.ContainerStats{
			Name:      c.name,
			StartTime: metav1.NewTime(c.start),
			CPU:       s.cpuStats(&c.usage),
			Memory:    s.memoryStats(&c.usage),
			Swap:      swapStats(&c.usage),
		})
	}
	return out
}

// addPodDetails adds what only the full summary has of a pod.
func (s *Stats) addPodDetails(out *statsapi.PodStats, p *podUsage) {
	out.IO = s.ioStats(&p.usage)
	out.Network = networkStats(p.network, p.at)
	var processes uint64
	for i := range p.containers {
		c := &p.containers[i]
		out.Containers[i].IO = s.ioStats(&c.usage)
		processes += c.tasks.processes
	}
	out.ProcessStats = &statsapi.ProcessStats{ProcessCount: &processes}
}

func (s *Stats) cpuStats(u *usage) *statsapi.CPUStats {
	out := &statsapi.CPUStats{Time: metav1.NewTime(u.at), UsageNanoCores: &u.nanoCores, UsageCoreNanoSeconds: &u.cpu.total}
	out.PSI = s.psi(u, func(p *pressure) *statsapi.PSIStats { return &p.cpu })
	return out
}

func (s *Stats) memoryStats(u *usage) *statsapi.MemoryStats {
	m := &u.memory
	out := &statsapi.MemoryStats{
		Time:            metav1.NewTime(u.at),
		UsageBytes:      &m.usage,
		WorkingSetBytes: &m.workingSet,
		RSSBytes:        &m.rss,
		PageFaults:      &m.pgfault,
		MajorPageFaults: &m.pgmajfault,
	}
	if hasLimit(m.limit) {
		available := m.limit - min(m.limit, m.workingSet)
		out.AvailableBytes = &available
	}
	out.PSI = s.psi(u, func(p *pressure) *statsapi.PSIStats { return &p.memory })
	return out
}

func swapStats(u *usage) *statsapi.SwapStats {
	m := &u.memory
	out := &statsapi.SwapStats{Time: metav1.NewTime(u.at), SwapUsageBytes: &m.swap}
	if hasLimit(m.swapLimit) {
		available := m.swapLimit - min(m.swapLimit, m.swap)
		out.SwapAvailableBytes = &available
	}
	return out
}

func (s *Stats) ioStats(u *usage) *statsapi.IOStats {
	if !s.cfg.PSI {
		return nil
	}
	return &statsapi.IOStats{
		Time: metav1.NewTime(u.at),
		PSI:  s.psi(u, func(p *pressure) *statsapi.PSIStats { return &p.io }),
	}
}

// psi is all zeros, not absent, if the kernel does not report pressure, as in the reference
// kubelet.
func (s *Stats) psi(u *usage, pick func(*pressure) *statsapi.PSIStats) *statsapi.PSIStats {
	switch {
	case !s.cfg.PSI:
		return nil
	case u.pressure == nil:
		return &statsapi.PSIStats{}
	}
	return pick(u.pressure)
}

func networkStats(interfaces []traffic, at time.Time) *statsapi.NetworkStats {
	if interfaces == nil {
		return nil
	}
	out := &statsapi.NetworkStats{Time: metav1.NewTime(at)}
	for i := range interfaces {
		t := &interfaces[i]
		one := statsapi.InterfaceStats{Name: t.name, RxBytes: &t.rxBytes, RxErrors: &t.rxErrors, TxBytes: &t.txBytes, TxErrors: &t.txErrors}
		if t.name == defaultInterface {
			out.InterfaceStats = one
		}
		out.Interfaces = append(out.Interfaces, one)
	}
	return out
}
