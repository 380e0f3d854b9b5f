package stats

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
)

// runtimePod is a pod with the usage that the runtime reports.
type runtimePod struct {
	podUsage // identifies the pod and its running containers, without usage
	linux    *runtimeapi.LinuxPodSandboxStats
	reported []*runtimeapi.ContainerStats // in the order of podUsage.containers
}

// readRuntimePods reads the usage of the pods whose sandboxes are ready from the runtime. It reports
// false if usage is to be read from the kernel: by configuration, or because the runtime does not
// report it.
func (s *Stats) readRuntimePods(ctx context.Context) (pods []runtimePod, used bool, err error) {
	if !s.cfg.PodsFromRuntime {
		return nil, false, nil
	}
	all, err := s.deps.Runtime.ListPodSandboxStats(ctx, &runtimeapi.PodSandboxStatsFilter{})
	if cri.IsUnimplemented(err) {
		s.noRuntimePods.Do(func() {
			s.deps.Log.Warn("stats: the runtime reports no usage of pods, reading it from the kernel", "err", err)
		})
		return nil, false, nil
	}
	if err != nil {
		return nil, true, err
	}
	observed := map[string]*pod.Observed{}
	for _, o := range s.deps.Pods() {
		if sandbox := o.Sandbox(); sandbox != nil {
			observed[sandbox.ID] = &o
		}
	}
	for _, one := range all {
		if o := observed[one.GetAttributes().GetId()]; o != nil {
			pods = append(pods, newRuntimePod(o, one.GetLinux()))
		}
	}
	slices.SortFunc(pods, func(a, b runtimePod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})
	s.runtimeRates.update(rateInputs(pods))
	return pods, true, nil
}

func newRuntimePod(o *pod.Observed, linux *runtimeapi.LinuxPodSandboxStats) runtimePod {
	p := runtimePod{podUsage: podUsage{Ref: o.Ref, start: o.Sandbox().CreatedAt}, linux: linux}
	if linux == nil {
		p.linux = &runtimeapi.LinuxPodSandboxStats{}
	}
	running := map[string]*pod.Container{}
	for i := range o.Containers {
		if c := &o.Containers[i]; c.State == pod.Running {
			running[c.ID] = c
		}
	}
	reported := slices.DeleteFunc(slices.Clone(p.linux.Containers), func(c *runtimeapi.ContainerStats) bool {
		return running[c.GetAttributes().GetId()] == nil
	})
	slices.SortFunc(reported, func(a, b *runtimeapi.ContainerStats) int {
		return strings.Compare(running[a.Attributes.Id].Name, running[b.Attributes.Id].Name)
	})
	for _, r := range reported {
		c := running[r.Attributes.Id]
		p.containers = append(p.containers, containerUsage{id: c.ID, name: c.Name, start: c.CreatedAt, usage: usage{
			path: c.ID, created: c.CreatedAt, at: time.Unix(0, r.GetCpu().GetTimestamp()),
			cpu: cpuUsage{total: r.GetCpu().GetUsageCoreNanoSeconds().GetValue()},
		}})
	}
	p.reported = reported
	return p
}

// rateInputs lists the containers, for runtimes that do not report a rate.
func rateInputs(pods []runtimePod) []*usage {
	var all []*usage
	for i := range pods {
		for j := range pods[i].containers {
			all = append(all, &pods[i].containers[j].usage)
		}
	}
	return all
}
