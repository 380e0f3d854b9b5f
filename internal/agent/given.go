package agent

import (
	"context"
	"fmt"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/metrics"
	"swiftlet/internal/node"
	"swiftlet/internal/resource/cpu"
	"swiftlet/internal/resource/memory"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/topology"
	"swiftlet/internal/runtime"
)

// given is what containers are given of the machine that others do not share.
type given struct {
	machine *topology.Machine
	layout  numa.Layout
	meters  metrics.Resources
	cpus    *cpu.CPUs
	memory  *memory.Memory
}

// makeGiven reads how the machine is made and what was given out before.
func (a *Agent) makeGiven() error {
	machine, err := topology.Read("/sys", uint64(a.machine.facts.MemoryBytes))
	if err != nil {
		if !a.doWithoutTopology(err) {
			return err
		}
		machine = &topology.Machine{}
	}
	a.given.machine, a.given.meters = machine, a.metrics.Resources()
	if a.given.layout, err = a.layout(machine); err != nil {
		return err
	}
	if err := a.makeCPUs(); err != nil {
		return err
	}
	return a.makeMemory()
}

// doWithoutTopology reports whether the agent goes on although it does not know how the
// machine is made: where no policy rests on that.
func (a *Agent) doWithoutTopology(err error) bool {
	kc := &a.cfg.Kubelet
	if kc.CPUManagerPolicy != cpu.None || kc.MemoryManagerPolicy != memory.None || kc.TopologyManagerPolicy != numa.None {
		return false
	}
	a.log.Warn("the machine's topology is not known, which nobody asked for", "err", err)
	return true
}

// layout is empty where it is beyond us and no policy rests on it.
func (a *Agent) layout(m *topology.Machine) (numa.Layout, error) {
	layout, err := numa.LayoutOf(m)
	if err != nil && a.doWithoutTopology(err) {
		return numa.Layout{}, nil
	}
	return layout, err
}

func (a *Agent) makeMemory() error {
	kc := &a.cfg.Kubelet
	reserved, err := node.ReservedFrom(&a.cfg.Kubelet, a.cfg.Flags.AllocatableIgnoreEviction)
	if err != nil {
		return err
	}
	sum, err := reserved.Sum(a.machine.facts.MemoryBytes)
	if err != nil {
		return err
	}
	a.given.memory, err = memory.New(memory.Config{
		Policy:      kc.MemoryManagerPolicy,
		Machine:     a.given.machine,
		PodLevel:    a.cfg.Features.PodLevelResourceManagers,
		Reserved:    memory.ReservedByNode(kc.ReservedMemory),
		Reservation: sum,
		Path:        filepath.Join(a.cfg.Flags.RootDir, "memory_manager_state"),
	}, memory.Deps{
		Tell:     a.warnNode,
		Requests: a.given.meters.MemoryRequests,
		Errors:   a.given.meters.MemoryErrors,
		Log:      a.log,
	})
	return err
}

func (a *Agent) makeCPUs() error {
	kc, f := &a.cfg.Kubelet, a.cfg.Features
	options, err := cpu.ParseOptions(kc.CPUManagerPolicyOptions, cpu.Unfinished{Alpha: f.CPUManagerPolicyAlphaOptions, Beta: f.CPUManagerPolicyBetaOptions})
	if err != nil {
		return err
	}
	if options.BySocket && kc.TopologyManagerPolicy == numa.SingleNode {
		return fmt.Errorf("cpuManagerPolicyOptions: align-by-socket excludes topologyManagerPolicy %s", numa.SingleNode)
	}
	named, err := topology.ParseList(kc.ReservedSystemCPUs)
	if err != nil {
		return fmt.Errorf("reservedSystemCPUs: %w", err)
	}
	reserved, err := node.ReservedFrom(&a.cfg.Kubelet, a.cfg.Flags.AllocatableIgnoreEviction)
	if err != nil {
		return err
	}
	share := reserved.Kube.Cpu().DeepCopy()
	share.Add(*reserved.System.Cpu())
	a.given.cpus, err = cpu.New(cpu.Config{
		Policy:        kc.CPUManagerPolicy,
		Options:       options,
		Machine:       a.given.machine,
		Reserved:      named,
		ReservedCount: int(share.Value()), // rounded up
		PodLevel:      f.PodLevelResourceManagers,
		Path:          filepath.Join(a.cfg.Flags.RootDir, "cpu_manager_state"),
	}, cpu.Deps{
		Running: func() ([]cpu.Running, error) { return cpu.RunningFrom(a.cri) },
		Tell:    a.warnNode,
		Changed: a.wakeAll,
		Meters:  a.given.meters.CPUs,
		Log:     a.log,
	})
	if err != nil {
		return err
	}
	a.metrics.CPUs(a.given.cpus.Tally)
	return nil
}

// makeAligner has all that is given to a container lie together.
func (a *Agent) makeAligner() error {
	kc := &a.cfg.Kubelet
	options, err := numa.ParseOptions(kc.TopologyManagerPolicyOptions)
	if err != nil {
		return err
	}
	a.pods.aligner, err = numa.New(numa.Config{
		Policy:   kc.TopologyManagerPolicy,
		Scope:    kc.TopologyManagerScope,
		Options:  options,
		Layout:   a.given.layout,
		PodLevel: a.cfg.Features.PodLevelResourceManagers,
	}, numa.Deps{
		Providers: []numa.Provider{a.pods.devices, a.given.cpus, a.given.memory},
		Meters:    a.given.meters.Align,
		Clock:     a.clock,
		Log:       a.log,
	})
	return err
}

// place says which part of the machine a container runs on.
func (g *given) place(p *v1.Pod, c *v1.Container) runtime.Place {
	return runtime.Place{CPUs: g.cpus.Of(p.UID, c.Name).String(), Memory: g.memory.Of(p.UID, c.Name), Alone: g.cpus.Alone(p, c)}
}

// retain takes back what was given to pods that are gone.
func (a *Agent) retain(ctx context.Context, known func(types.UID) bool) error {
	a.pods.devices.Retain(known)
	for _, uid := range append(a.given.cpus.Pods(), a.given.memory.Pods()...) {
		if !known(uid) {
			a.log.Info("giving back what a pod had that nobody wants", "pod", uid)
			a.pods.aligner.Release(uid)
		}
	}
	return a.pods.claims.Retain(ctx, known)
}

// cpusOf lists the CPUs that a running container is to be on; empty where it may stay.
func (g *given) cpusOf(uid types.UID, container string) string {
	return g.cpus.Of(uid, container).String()
}

// bind moves a running container to other CPUs. All else stays as it is.
func (a *Agent) bind(ctx context.Context, id, cpus string) error {
	return a.cri.UpdateContainerResources(ctx, id, &runtimeapi.LinuxContainerResources{CpusetCpus: cpus})
}

// wakeAll has every pod look at where its containers run.
func (a *Agent) wakeAll() {
	for _, p := range a.pods.workers.Active() {
		a.pods.workers.Wake(p.UID)
	}
}

// warnNode has the administrator see what the log says too.
func (a *Agent) warnNode(reason, message string) {
	a.api.events.Eventf(a.nodeRef(), v1.EventTypeWarning, reason, "%s", message)
}
