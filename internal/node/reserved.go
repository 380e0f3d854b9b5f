package node

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/config"
	"swiftlet/internal/resource/topology"
)

// ReservedFrom parses the resources that the configuration reserves. If ignoreEviction is
// set, eviction thresholds reserve nothing.
func ReservedFrom(kc *kubelet.KubeletConfiguration, ignoreEviction bool) (Reserved, error) {
	kube, err := parseQuantities("kubeReserved", kc.KubeReserved)
	if err != nil {
		return Reserved{}, err
	}
	system, err := parseQuantities("systemReserved", kc.SystemReserved)
	if err != nil {
		return Reserved{}, err
	}
	if list := kc.ReservedSystemCPUs; list != "" {
		cpus, err := topology.ParseList(list)
		if err != nil {
			return Reserved{}, config.Invalid("reservedSystemCPUs", "%s", err)
		}
		delete(kube, v1.ResourceCPU)
		system[v1.ResourceCPU] = *resource.NewQuantity(int64(cpus.Size()), resource.DecimalSI)
	}
	reserved := Reserved{Kube: kube, System: system, EvictionHard: kc.EvictionHard}
	if ignoreEviction {
		reserved.EvictionHard = nil
	}
	return reserved, nil
}

func parseQuantities(field string, amounts map[string]string) (v1.ResourceList, error) {
	list := v1.ResourceList{}
	for name, amount := range amounts {
		q, err := resource.ParseQuantity(amount)
		if err != nil {
			return nil, config.Invalid(field+"."+name, "%q: %s", amount, err)
		}
		list[v1.ResourceName(name)] = q
	}
	return list, nil
}

// Memory is how much of the machine's memory all pods together may use, in bytes. It does not
// subtract eviction thresholds.
func (r Reserved) Memory(capacity int64) int64 {
	return capacity - r.Kube.Memory().Value() - r.System.Memory().Value()
}

// ReservationsFrom lists the system cgroups that enforceNodeAllocatable limits, in the order
// in which the reference kubelet limits them.
func ReservationsFrom(kc *kubelet.KubeletConfiguration, reserved Reserved) (all []Reservation) {
	system := Reservation{Name: "System Reserved", Cgroup: kc.SystemReservedCgroup, Amounts: reserved.System}
	kube := Reservation{Name: "Kube Reserved", Cgroup: kc.KubeReservedCgroup, Amounts: reserved.Kube}
	for _, suffix := range []string{"", "-compressible"} {
		system.Compressible, kube.Compressible = suffix != "", suffix != ""
		if slices.Contains(kc.EnforceNodeAllocatable, "system-reserved"+suffix) {
			all = append(all, system)
		}
		if slices.Contains(kc.EnforceNodeAllocatable, "kube-reserved"+suffix) {
			all = append(all, kube)
		}
	}
	return all
}
