package cgroup

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// Node holds the inputs of ConfigFrom that are not in the kubelet configuration.
type Node struct {
	Driver Driver
	// Version is 1 or 2.
	Version int
	// MemoryQoS and QOSReserved are feature gates.
	MemoryQoS, QOSReserved bool
	// PodMemory is how much memory all pods together may use.
	PodMemory int64
}

// ConfigFrom returns the Config for a kubelet configuration.
func ConfigFrom(kc *kubelet.KubeletConfiguration, node Node) (Config, error) {
	c := Config{
		Driver: node.Driver,
		Root:   kc.CgroupRoot,
		Limits: Limits{
			CFSQuota:  *kc.CPUCFSQuota,
			CFSPeriod: kc.CPUCFSQuotaPeriod.Duration,
			PodPIDs:   *kc.PodPidsLimit,
		},
	}
	if node.MemoryQoS && node.Version == 2 {
		c.MemoryQOS = &MemoryQOS{
			Tiered:           kc.MemoryReservationPolicy == kubelet.TieredReservationMemoryReservationPolicy,
			ThrottlingFactor: kc.MemoryThrottlingFactor,
		}
	}
	if share, ok := kc.QOSReserved["memory"]; ok && node.QOSReserved {
		percent, err := strconv.ParseInt(strings.TrimSuffix(share, "%"), 10, 64)
		if err != nil {
			return Config{}, fmt.Errorf("qosReserved.memory: %w", err)
		}
		c.QOSReserved = &QOSReserved{Percent: percent, Memory: node.PodMemory}
	}
	return c, nil
}

// DriverFor returns the cgroup driver that the container runtime reports, else the configured
// one. Pods fail to start where kubelet and runtime use different drivers.
func DriverFor(runtime, configured string, log *slog.Logger) Driver {
	if runtime == "" {
		return Driver(configured)
	}
	if runtime != configured {
		log.Info("using the cgroup driver of the container runtime", "driver", runtime, "configured", configured)
	}
	return Driver(runtime)
}

// MoveConfiguredProcesses moves this process to kubeletCgroups, and processes that are in the root
// cgroup to systemCgroups. Failures are logged only: pods run without that.
func (t *Tree) MoveConfiguredProcesses(kc *kubelet.KubeletConfiguration, log *slog.Logger) {
	if kc.KubeletCgroups != "" {
		if err := t.MoveProcesses(kc.KubeletCgroups, os.Getpid()); err != nil {
			log.Warn("cgroup: cannot move the kubelet to its cgroup", "kubeletCgroups", kc.KubeletCgroups, "err", err)
		}
	}
	if kc.SystemCgroups != "" {
		pids, err := t.RootProcesses()
		if err == nil {
			err = t.MoveProcesses(kc.SystemCgroups, pids...)
		}
		if err != nil {
			log.Warn("cgroup: cannot move system processes to their cgroup", "systemCgroups", kc.SystemCgroups, "err", err)
		}
	}
}
