package cgroup

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// Node is what a Config depends on beside the configuration file.
type Node struct {
	Driver Driver
	// Version is 1 or 2.
	Version int
	// MemoryQoS and QOSReserved are feature gates.
	MemoryQoS, QOSReserved bool
	// PodMemory is how much memory all pods together may use.
	PodMemory int64
}

// ConfigFrom reads how pods are limited.
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
		c.QOSReserve = &QOSReserve{Percent: percent, Memory: node.PodMemory}
	}
	return c, nil
}

// DriverFor is the cgroup driver of the container runtime where it reports one: no pod starts
// where the kubelet uses another.
func DriverFor(runtime, configured string, log *slog.Logger) Driver {
	if runtime == "" {
		return Driver(configured)
	}
	if runtime != configured {
		log.Info("cgroup driver taken from the container runtime", "driver", runtime, "configured", configured)
	}
	return Driver(runtime)
}

// EnterConfigured moves this process to kubeletCgroups, and processes that are in the root
// cgroup to systemCgroups. What cannot be moved is logged: pods run without.
func (t *Tree) EnterConfigured(kc *kubelet.KubeletConfiguration, log *slog.Logger) {
	if kc.KubeletCgroups != "" {
		if err := t.Enter(kc.KubeletCgroups, os.Getpid()); err != nil {
			log.Warn("cgroup: cannot move the kubelet to its cgroup", "kubeletCgroups", kc.KubeletCgroups, "err", err)
		}
	}
	if kc.SystemCgroups != "" {
		stray, err := t.Stray()
		if err == nil {
			err = t.Enter(kc.SystemCgroups, stray...)
		}
		if err != nil {
			log.Warn("cgroup: cannot move system processes to their cgroup", "systemCgroups", kc.SystemCgroups, "err", err)
		}
	}
}
