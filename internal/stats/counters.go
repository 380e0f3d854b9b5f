package stats

import (
	"math"
	"time"
)

// Counters is what the node has used. NaN is unknown.
type Counters struct {
	At, Boot           time.Time
	CPUSeconds         float64 // since the boot
	Memory             float64 // working set, bytes
	Disk, DiskCapacity float64 // bytes of nodefs
	RX, TX             float64 // bytes of all interfaces that leave the machine, since the boot
	// Percent of the last ten seconds in which some tasks waited.
	PSICPU, PSIMemory, PSIIO float64
}

// Counters reads the node with a dozen files, whatever the number of its pods.
func (s *Stats) Counters() Counters {
	unknown := math.NaN()
	c := Counters{At: s.deps.Clock.Now(), Boot: s.boot, CPUSeconds: unknown, Memory: unknown, Disk: unknown, DiskCapacity: unknown,
		RX: unknown, TX: unknown, PSICPU: unknown, PSIMemory: unknown, PSIIO: unknown}
	buf := newFileReader()
	if root, err := s.readGroup(buf, "/", s.boot, shallow); err == nil {
		c.CPUSeconds, c.Memory = float64(root.cpu.total)/1e9, float64(root.memory.workingSet)
	}
	if disk, err := statfs(s.cfg.RootDir); err == nil {
		c.Disk, c.DiskCapacity = float64(disk.used), float64(disk.capacity)
	}
	if all, err := readNetwork(buf, "self"); err == nil {
		c.RX, c.TX = 0, 0
		for _, t := range all {
			c.RX, c.TX = c.RX+float64(t.rxBytes), c.TX+float64(t.txBytes)
		}
	}
	for file, into := range map[string]*float64{"cpu": &c.PSICPU, "memory": &c.PSIMemory, "io": &c.PSIIO} {
		if text, err := buf.read("/proc/pressure/" + file); err == nil {
			*into = parsePressure(text).Some.Avg10
		}
	}
	return c
}
