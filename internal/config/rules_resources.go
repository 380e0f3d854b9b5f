package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"
)

// enforcement checks enforceNodeAllocatable.
func enforcement(v *validation) {
	const field = "enforceNodeAllocatable"
	list := v.kc.EnforceNodeAllocatable
	for i, target := range list {
		if slices.Contains(list[:i], target) {
			v.addf(field, "%q is given twice", target)
			continue
		}
		switch base := strings.TrimSuffix(target, "-compressible"); {
		case target == "none":
			if len(list) > 1 {
				v.addf(field, "may not have more than %q", target)
			}
			continue
		case target == "pods":
		case base == "system-reserved":
			if v.kc.SystemReservedCgroup == "" {
				v.addf(field, "%q needs systemReservedCgroup", target)
			}
		case base == "kube-reserved":
			if v.kc.KubeReservedCgroup == "" {
				v.addf(field, "%q needs kubeReservedCgroup", target)
			}
		default:
			v.addf(field, "%q must be one of none, pods, system-reserved, system-reserved-compressible, kube-reserved, kube-reserved-compressible", target)
			continue
		}
		if !*v.kc.CgroupsPerQOS {
			v.addf(field, "%q needs cgroupsPerQOS", target)
		}
		if slices.Contains(list, target+"-compressible") {
			v.addf(field, "cannot have both %q and %q", target, target+"-compressible")
		}
	}
}

func reservedCPUs(v *validation) {
	cpus := v.kc.ReservedSystemCPUs
	if cpus == "" {
		return
	}
	if _, err := cpuset.Parse(cpus); err != nil {
		v.addf("reservedSystemCPUs", "%q is not a list of CPUs, such as 0-1,4", cpus)
	}
	if v.kc.SystemReservedCgroup != "" || v.kc.KubeReservedCgroup != "" {
		v.addf("reservedSystemCPUs", "cannot be given together with systemReservedCgroup or kubeReservedCgroup")
	}
}

func isMemory(name v1.ResourceName) bool {
	return name == v1.ResourceMemory || strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}

func reservedMemory(v *validation) {
	type key struct {
		node int32
		name v1.ResourceName
	}
	seen := map[key]bool{}
	for i, r := range v.kc.ReservedMemory {
		for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
			field := fmt.Sprintf("reservedMemory[%d].limits.%s", i, name)
			quantity := r.Limits[name]
			if !isMemory(name) {
				v.addf(field, "must be memory or hugepages-SIZE")
			}
			if quantity.IsZero() {
				v.addf(field, "must not be zero")
			}
			if k := (key{r.NumaNode, name}); seen[k] {
				v.addf(field, "is given twice for NUMA node %d", r.NumaNode)
			} else {
				seen[k] = true
			}
		}
	}
}

// reservations checks systemReserved, kubeReserved and qosReserved.
func reservations(v *validation) {
	for field, amounts := range map[string]map[string]string{"systemReserved": v.kc.SystemReserved, "kubeReserved": v.kc.KubeReserved} {
		for name, amount := range amounts {
			q, err := resource.ParseQuantity(amount)
			switch {
			case !slices.Contains([]string{"cpu", "memory", "ephemeral-storage", "pid"}, name):
				v.addf(field+"."+name, "cannot be reserved: only cpu, memory, ephemeral-storage and pid can")
			case err != nil:
				v.addf(field+"."+name, "%q is not a quantity, such as 500m or 2Gi", amount)
			case q.Sign() < 0:
				v.addf(field+"."+name, "%q must not be negative", amount)
			}
		}
	}
	for name, share := range v.kc.QOSReserved {
		if name != "memory" {
			v.addf("qosReserved."+name, "cannot be reserved: only memory can")
		} else if percent, err := strconv.Atoi(strings.TrimSuffix(share, "%")); err != nil || !strings.HasSuffix(share, "%") || percent < 0 || percent > 100 {
			v.addf("qosReserved."+name, "%q is not a percentage from 0%% to 100%%", share)
		}
	}
}

func throttling(v *validation) {
	if f := v.kc.MemoryThrottlingFactor; f != nil && !(*f > 0 && *f <= 1) {
		v.addf("memoryThrottlingFactor", "%v must be greater than 0 and at most 1", *f)
	}
}

func userNamespaces(v *validation) {
	const unit = 1 << 16 // ID ranges are multiples of this size
	if v.kc.UserNamespaces == nil || v.kc.UserNamespaces.IDsPerPod == nil {
		return
	}
	if n := *v.kc.UserNamespaces.IDsPerPod; n < unit || n%unit != 0 || n > math.MaxUint32 {
		v.addf("userNamespaces.idsPerPod", "%d must be a multiple of %d and at most %d", n, unit, uint32(math.MaxUint32))
	}
}

func systemCgroups(v *validation) {
	if v.kc.SystemCgroups != "" && v.kc.CgroupRoot == "" {
		v.addf("systemCgroups", "needs cgroupRoot")
	}
}

func logSize(v *validation) {
	q, err := resource.ParseQuantity(v.kc.ContainerLogMaxSize)
	if err == nil {
		if _, whole := q.AsInt64(); whole {
			return
		}
	}
	v.addf("containerLogMaxSize", "%q is not a number of bytes, such as 10Mi", v.kc.ContainerLogMaxSize)
}

// evictionSignals are the valid keys of eviction thresholds.
var evictionSignals = []string{
	"memory.available", "allocatableMemory.available", "pid.available",
	"nodefs.available", "nodefs.inodesFree",
	"imagefs.available", "imagefs.inodesFree",
	"containerfs.available", "containerfs.inodesFree",
}

// signals calls check for each entry with a valid signal and reports the others.
func (v *validation) signals(field string, entries map[string]string, check func(field, value string)) {
	for _, signal := range slices.Sorted(maps.Keys(entries)) {
		if !slices.Contains(evictionSignals, signal) {
			v.addf(field+"."+signal, "is not an eviction signal%s", DidYouMean(signal, slices.Values(evictionSignals)))
			continue
		}
		check(field+"."+signal, entries[signal])
	}
}

// parseAmount parses a quantity or a percentage and reports a problem if the text is neither.
func (v *validation) parseAmount(field, text string) (amount float64, ok bool) {
	if number, percent := strings.CutSuffix(text, "%"); percent {
		share, err := strconv.ParseFloat(number, 32)
		if err != nil || share > 100 || math.IsNaN(share) {
			v.addf(field, "%q is not a percentage from 0%% to 100%%", text)
			return 0, false
		}
		return share, true
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		v.addf(field, "%q is not a quantity or percentage", text)
		return 0, false
	}
	return q.AsApproximateFloat64(), true
}

func evictionThresholds(v *validation) {
	check := func(field, text string) {
		amount, ok := v.parseAmount(field, text)
		// 0% disables a threshold.
		if ok && (amount < 0 || amount == 0 && !strings.HasSuffix(text, "%")) {
			v.addf(field, "%q must be greater than zero", text)
		}
	}
	v.signals("evictionHard", v.kc.EvictionHard, check)
	v.signals("evictionSoft", v.kc.EvictionSoft, check)
}

func evictionPeriods(v *validation) {
	v.signals("evictionSoftGracePeriod", v.kc.EvictionSoftGracePeriod, func(field, text string) {
		if d, err := time.ParseDuration(text); err != nil || d < 0 {
			v.addf(field, "%q is not a duration, such as 1m30s", text)
		}
	})
	for _, signal := range slices.Sorted(maps.Keys(v.kc.EvictionSoft)) {
		disabled := v.kc.EvictionSoft[signal] == "0%" || v.kc.EvictionSoft[signal] == "100%"
		if _, ok := v.kc.EvictionSoftGracePeriod[signal]; !ok && !disabled {
			v.addf("evictionSoft."+signal, "needs evictionSoftGracePeriod.%s", signal)
		}
	}
}

func evictionReclaims(v *validation) {
	v.signals("evictionMinimumReclaim", v.kc.EvictionMinimumReclaim, func(field, text string) {
		amount, ok := v.parseAmount(field, text)
		if ok && (amount < 0 || amount == 0 && strings.HasSuffix(text, "%")) {
			v.addf(field, "%q must be greater than zero", text)
		}
	})
}
