package resource

import (
	"errors"
	"log/slog"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/config"
	"swiftlet/internal/meter"
	"swiftlet/internal/resource/cpu"
	"swiftlet/internal/resource/memory"
	"swiftlet/internal/resource/numa"
)

// Reserved is what the node keeps from pods.
type Reserved struct {
	// CPU is that of kubeReserved and systemReserved.
	CPU resource.Quantity
	// All includes what the eviction thresholds keep free.
	All v1.ResourceList
}

// ExclusiveDeps are what the CPU and memory managers work with.
type ExclusiveDeps struct {
	// Running lists which CPUs containers run on.
	Running func() ([]cpu.Running, error)
	// Warn records an event about the node.
	Warn func(reason, message string)
	// SharedChanged is called when the shared CPUs change. It must not block.
	SharedChanged                func()
	CPUs                         cpu.Meters
	MemoryRequests, MemoryErrors meter.Count
	Log                          *slog.Logger
}

// Exclusive allocates exclusive CPUs and memory of NUMA nodes to containers.
type Exclusive struct {
	Machine
	CPUs   *cpu.CPUs
	Memory *memory.Memory
}

// NewExclusive reads the machine and the allocations of an earlier agent.
func NewExclusive(cfg *config.Config, memoryBytes int64, reserved Reserved, deps ExclusiveDeps) (*Exclusive, error) {
	machine, err := ReadMachine(cfg, memoryBytes, deps.Log)
	if err != nil {
		return nil, err
	}
	cpus, err := cpu.ConfigFrom(cfg, machine.Topology, reserved.CPU)
	if err != nil {
		return nil, err
	}
	e := &Exclusive{Machine: machine}
	e.CPUs, err = cpu.New(cpus, cpu.Deps{Running: deps.Running, WarnNode: deps.Warn, Changed: deps.SharedChanged, Meters: deps.CPUs, Log: deps.Log})
	if err != nil {
		return nil, err
	}
	e.Memory, err = memory.New(memory.ConfigFrom(cfg, machine.Topology, reserved.All),
		memory.Deps{WarnNode: deps.Warn, Requests: deps.MemoryRequests, Errors: deps.MemoryErrors, Log: deps.Log})
	return e, err
}

// Check returns an error if the policies of CPUs, memory and topology are not possible on this machine.
// It changes nothing.
func Check(cfg *config.Config, memoryBytes int64, reserved Reserved) error {
	machine, err := ReadMachine(cfg, memoryBytes, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	cpus, err := cpu.ConfigFrom(cfg, machine.Topology, reserved.CPU)
	if err != nil {
		return err
	}
	aligner, err := numa.ConfigFrom(cfg, machine.Layout)
	if err != nil {
		return err
	}
	return errors.Join(cpus.Check(), memory.ConfigFrom(cfg, machine.Topology, reserved.All).Check(), aligner.Check())
}
