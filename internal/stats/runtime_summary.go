package stats

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// runtimeSummary converts the usage that the runtime reports. Which values it fills with zeros, and
// which it leaves out, is as in the reference kubelet.
type runtimeSummary struct {
	psi bool
	// usageOnly: only CPU, memory and swap. Then values that the runtime does not report are zero.
	usageOnly bool
	now       time.Time
}

func (s *Stats) runtimeSummary(usageOnly bool) runtimeSummary {
	return runtimeSummary{psi: s.cfg.PSI, usageOnly: usageOnly, now: s.deps.Clock.Now()}
}

// addRuntimePods adds the pods that the runtime reports with their storage.
func (s *Stats) addRuntimePods(ctx context.Context, out *statsapi.Summary, reported []runtimePod, disks *disks) {
	var pods []*podUsage
	for i := range reported {
		pods = append(pods, &reported[i].podUsage)
		disks.addLayers(reported[i].reported)
	}
	s.measureVolumesOf(ctx, pods)
	for i, p := range pods {
		stats := s.runtimeSummary(false).pod(&reported[i])
		s.addPodStorage(&stats, p, disks)
		out.Pods = append(out.Pods, stats)
	}
}

func (r runtimeSummary) pod(p *runtimePod) statsapi.PodStats {
	out := statsapi.PodStats{
		PodRef:    statsapi.PodReference{Name: p.Name, Namespace: p.Namespace, UID: string(p.UID)},
		StartTime: metav1.NewTime(p.start),
	}
	if c := p.linux.Cpu; c != nil {
		out.CPU = r.cpu(c, number(c.UsageNanoCores), number)
	}
	if m := p.linux.Memory; m != nil {
		out.Memory = r.memory(m, number)
	}
	for i, c := range p.reported {
		out.Containers = append(out.Containers, r.container(&p.containers[i], c))
	}
	if r.usageOnly {
		out.Swap = sumSwap(out.Containers)
		return out
	}
	if n := p.linux.Network; n != nil {
		out.Network = runtimeNetwork(n)
	}
	if n := p.linux.Process; n != nil {
		out.ProcessStats = &statsapi.ProcessStats{ProcessCount: number(n.ProcessCount)}
	}
	if io := p.linux.Io; io != nil && r.psi {
		out.IO = &statsapi.IOStats{Time: unixNano(io.Timestamp), PSI: r.pressure(io.Psi)}
	}
	return out
}

func (r runtimeSummary) container(c *containerUsage, reported *runtimeapi.ContainerStats) statsapi.ContainerStats {
	out := statsapi.ContainerStats{Name: c.name, StartTime: metav1.NewTime(c.start)}
	value := number
	if r.usageOnly {
		value = orZero
	}
	if cpu := reported.Cpu; cpu != nil {
		rate := number(cpu.UsageNanoCores)
		if rate == nil && cpu.UsageCoreNanoSeconds != nil {
			rate = &c.nanoCores
		}
		out.CPU = r.cpu(cpu, rate, value)
	} else {
		out.CPU = &statsapi.CPUStats{Time: metav1.NewTime(r.now), UsageCoreNanoSeconds: new(uint64), UsageNanoCores: new(uint64)}
	}
	switch {
	case reported.Memory != nil:
		out.Memory = r.memory(reported.Memory, value)
	case r.usageOnly:
		out.Memory = r.memory(&runtimeapi.MemoryUsage{Timestamp: r.now.UnixNano()}, orZero)
	default:
		out.Memory = &statsapi.MemoryStats{Time: metav1.NewTime(r.now), WorkingSetBytes: new(uint64), UsageBytes: new(uint64), RSSBytes: new(uint64)}
	}
	if s := reported.Swap; s != nil {
		out.Swap = &statsapi.SwapStats{Time: unixNano(s.Timestamp), SwapUsageBytes: value(s.SwapUsageBytes), SwapAvailableBytes: value(s.SwapAvailableBytes)}
	} else {
		out.Swap = &statsapi.SwapStats{Time: metav1.NewTime(r.now), SwapUsageBytes: new(uint64), SwapAvailableBytes: new(uint64)}
	}
	if r.psi && !r.usageOnly {
		out.IO = &statsapi.IOStats{Time: metav1.NewTime(r.now)}
		if io := reported.Io; io != nil {
			out.IO = &statsapi.IOStats{Time: unixNano(io.Timestamp), PSI: r.pressure(io.Psi)}
		}
	}
	return out
}

func (r runtimeSummary) cpu(c *runtimeapi.CpuUsage, rate *uint64, value func(*runtimeapi.UInt64Value) *uint64) *statsapi.CPUStats {
	return &statsapi.CPUStats{
		Time: unixNano(c.Timestamp), UsageNanoCores: rate, UsageCoreNanoSeconds: value(c.UsageCoreNanoSeconds), PSI: r.pressure(c.Psi),
	}
}

func (r runtimeSummary) memory(m *runtimeapi.MemoryUsage, value func(*runtimeapi.UInt64Value) *uint64) *statsapi.MemoryStats {
	return &statsapi.MemoryStats{
		Time: unixNano(m.Timestamp), AvailableBytes: value(m.AvailableBytes), UsageBytes: value(m.UsageBytes), WorkingSetBytes: value(m.WorkingSetBytes),
		RSSBytes: value(m.RssBytes), PageFaults: value(m.PageFaults), MajorPageFaults: value(m.MajorPageFaults), PSI: r.pressure(m.Psi),
	}
}

func (r runtimeSummary) pressure(p *runtimeapi.PsiStats) *statsapi.PSIStats {
	if !r.psi || p == nil {
		return nil
	}
	data := func(d *runtimeapi.PsiData) statsapi.PSIData {
		return statsapi.PSIData{Total: d.GetTotal(), Avg10: d.GetAvg10(), Avg60: d.GetAvg60(), Avg300: d.GetAvg300()}
	}
	return &statsapi.PSIStats{Full: data(p.Full), Some: data(p.Some)}
}

func runtimeNetwork(n *runtimeapi.NetworkUsage) *statsapi.NetworkStats {
	convert := func(i *runtimeapi.NetworkInterfaceUsage) statsapi.InterfaceStats {
		return statsapi.InterfaceStats{
			Name: i.GetName(), RxBytes: number(i.GetRxBytes()), RxErrors: number(i.GetRxErrors()), TxBytes: number(i.GetTxBytes()), TxErrors: number(i.GetTxErrors()),
		}
	}
	out := &statsapi.NetworkStats{Time: unixNano(n.Timestamp), InterfaceStats: convert(n.DefaultInterface)}
	for _, i := range n.Interfaces {
		out.Interfaces = append(out.Interfaces, convert(i))
	}
	return out
}

// sumSwap returns the swap of all containers: the runtime does not report that of pods.
func sumSwap(containers []statsapi.ContainerStats) *statsapi.SwapStats {
	if len(containers) == 0 {
		return nil
	}
	sum := &statsapi.SwapStats{SwapAvailableBytes: new(uint64), SwapUsageBytes: new(uint64)}
	for _, c := range containers {
		sum.Time = c.Swap.Time
		*sum.SwapAvailableBytes += *c.Swap.SwapAvailableBytes
		*sum.SwapUsageBytes += *c.Swap.SwapUsageBytes
	}
	return sum
}

func unixNano(t int64) metav1.Time { return metav1.NewTime(time.Unix(0, t)) }

// number returns a value that the runtime reports, nil if it does not.
func number(v *runtimeapi.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	return &v.Value
}

// orZero is number with zero for a value that the runtime does not report.
func orZero(v *runtimeapi.UInt64Value) *uint64 {
	n := v.GetValue()
	return &n
}
