package config

import (
	"bufio"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Host holds the properties of the host that the configuration is checked against.
type Host struct {
	CgroupV2 bool
	Swap     bool // swap is enabled
}

// ReadHost reads the properties of the current host.
func ReadHost() Host {
	var h Host
	var fs unix.Statfs_t
	h.CgroupV2 = unix.Statfs("/sys/fs/cgroup", &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
	if f, err := os.Open("/proc/swaps"); err == nil {
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Scan() // the header
		h.Swap = lines.Scan() && lines.Text() != ""
	}
	return h
}

// CheckHost returns an error if the configuration does not allow to start on this host.
func (c *Config) CheckHost(h Host) error {
	var errs []error
	if *c.Kubelet.FailCgroupV1 && !h.CgroupV2 {
		errs = append(errs, Invalid("failCgroupV1", "is true and this host has cgroup v1; set it to false to run here"))
	}
	if *c.Kubelet.FailSwapOn && h.Swap {
		errs = append(errs, Invalid("failSwapOn", "is true and this host has swap; turn swap off or set it to false to run here"))
	}
	if s := c.Kubelet.SingleProcessOOMKill; s != nil && !*s && !h.CgroupV2 {
		errs = append(errs, Invalid("singleProcessOOMKill", "cannot be false on this host, which has cgroup v1"))
	}
	return errors.Join(errs...)
}
