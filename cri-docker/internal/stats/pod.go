package stats

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	dockercontainer "github.com/moby/moby/api/types/container"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/labels"
)

// Pod returns the usage of one sandbox: the sum of the pause process and the containers.
func (s *Stats) Pod(ctx context.Context, id string) (*runtimeapi.PodSandboxStats, error) {
	c, l, err := s.Sandboxes.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	p := &runtimeapi.PodSandboxStats{Attributes: attributes(c.ID, l), Linux: &runtimeapi.LinuxPodSandboxStats{}}
	p.Linux.Containers, err = s.ListContainers(ctx, &runtimeapi.ContainerStatsFilter{PodSandboxId: c.ID})
	if err != nil || !c.State.Running {
		return p, err
	}
	pause, err := s.Engine.Stats(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	at := time.Now().UnixNano()
	p.Linux.Cpu, p.Linux.Memory = cpu(pause, at), memory(pause, at)
	p.Linux.Memory.AvailableBytes = nil // that of the pause process alone says nothing
	for _, member := range p.Linux.Containers {
		add(p.Linux, member)
	}
	p.Linux.Process, err = s.processes(ctx, pause, p.Linux.Containers, at)
	if err != nil {
		return nil, err
	}
	p.Linux.Network, err = network(c.State.Pid, at)
	return p, err
}

func attributes(id string, l labels.Sandbox) *runtimeapi.PodSandboxAttributes {
	return &runtimeapi.PodSandboxAttributes{Id: id, Metadata: l.Config.GetMetadata(), Labels: l.Config.GetLabels(), Annotations: l.Config.GetAnnotations()}
}

// ListPods returns the usage of all sandboxes that match and run.
func (s *Stats) ListPods(ctx context.Context, f *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	found, err := s.Sandboxes.List(ctx, &runtimeapi.PodSandboxFilter{Id: f.GetId(), LabelSelector: f.GetLabelSelector(),
		State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}})
	if err != nil {
		return nil, err
	}
	all := make([]*runtimeapi.PodSandboxStats, len(found))
	err = each(ctx, len(found), func(ctx context.Context, i int) error {
		var err error
		all[i], err = s.Pod(ctx, found[i].GetId())
		return err
	})
	return present(all), err
}

func add(p *runtimeapi.LinuxPodSandboxStats, c *runtimeapi.ContainerStats) {
	sum := func(to, from *runtimeapi.UInt64Value) {
		to.Value += from.GetValue()
	}
	sum(p.Cpu.UsageCoreNanoSeconds, c.GetCpu().GetUsageCoreNanoSeconds())
	sum(p.Memory.UsageBytes, c.GetMemory().GetUsageBytes())
	sum(p.Memory.WorkingSetBytes, c.GetMemory().GetWorkingSetBytes())
	sum(p.Memory.RssBytes, c.GetMemory().GetRssBytes())
	sum(p.Memory.PageFaults, c.GetMemory().GetPageFaults())
	sum(p.Memory.MajorPageFaults, c.GetMemory().GetMajorPageFaults())
}

// processes counts the tasks of all containers.
func (s *Stats) processes(ctx context.Context, pause dockercontainer.StatsResponse, members []*runtimeapi.ContainerStats, at int64) (*runtimeapi.ProcessUsage, error) {
	counts := make([]uint64, len(members))
	err := each(ctx, len(members), func(ctx context.Context, i int) error {
		usage, err := s.Engine.Stats(ctx, members[i].GetAttributes().GetId())
		counts[i] = usage.PidsStats.Current
		return err
	})
	total := pause.PidsStats.Current
	for _, count := range counts {
		total += count
	}
	return &runtimeapi.ProcessUsage{Timestamp: at, ProcessCount: value(total)}, err
}

// network reads the interfaces of a process's network namespace.
func network(pid int, at int64) (*runtimeapi.NetworkUsage, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/net/dev", pid))
	if err != nil {
		return nil, fmt.Errorf("read network usage: %w", err)
	}
	defer file.Close()
	usage := &runtimeapi.NetworkUsage{Timestamp: at}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		i, ok := parseInterface(lines.Text())
		switch {
		case !ok || i.GetName() == "lo":
		case i.GetName() == "eth0":
			usage.DefaultInterface = i
		default:
			usage.Interfaces = append(usage.Interfaces, i)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read network usage: %w", err)
	}
	return usage, nil
}

// parseInterface reads a line of /proc/net/dev: name, 8 columns received, 8 columns sent.
func parseInterface(line string) (*runtimeapi.NetworkInterfaceUsage, bool) {
	name, text, ok := strings.Cut(line, ":")
	columns := strings.Fields(text)
	if !ok || len(columns) < 16 {
		return nil, false
	}
	i := &runtimeapi.NetworkInterfaceUsage{Name: strings.TrimSpace(name)}
	for column, to := range map[int]**runtimeapi.UInt64Value{0: &i.RxBytes, 2: &i.RxErrors, 8: &i.TxBytes, 10: &i.TxErrors} {
		n, err := strconv.ParseUint(columns[column], 10, 64)
		if err != nil {
			return nil, false
		}
		*to = value(n)
	}
	return i, true
}
