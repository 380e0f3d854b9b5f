package node

import "swiftlet/internal/stats"

// ForStats converts m to the type that package stats reports.
func (m *Machine) ForStats() stats.Machine {
	machine := stats.Machine{
		CPUs:       m.CPUs,
		Memory:     uint64(m.MemoryBytes),
		Swap:       uint64(m.SwapBytes),
		MaxPIDs:    m.MaxPIDs,
		MachineID:  m.MachineID,
		SystemUUID: m.SystemUUID,
		BootID:     m.BootID,
		Kernel:     m.Kernel,
		OSImage:    m.OSImage,
	}
	for _, bytes := range m.Hugepages {
		machine.HugePages += uint64(bytes)
	}
	return machine
}
