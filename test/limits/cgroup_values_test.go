package limits

import (
	"errors"
	"fmt"
	"testing"
)

// pod is a pod manifest; spec has further fields of the spec.
func pod(name, spec string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {hostNetwork: true, terminationGracePeriodSeconds: 1, %s}\n", name, spec)
}

// container is a container of a pod manifest that sleeps.
func container(name, resources string) string {
	return fmt.Sprintf("{name: %s, image: docker.io/library/busybox:1.36, command: [sleep, '1000'], resources: {%s}}", name, resources)
}

// manifests are the pods whose cgroup files are compared. CPU limits are generous: they also apply
// to the runtime's own steps at a container's start.
var manifests = map[string]string{
	"besteffort": pod("besteffort", "containers: ["+container("app", "")+"]"),
	"burstable": pod("burstable", "containers: ["+
		container("limited", "requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 1500m, memory: 64Mi}")+", "+
		container("unlimited", "requests: {cpu: 50m, memory: 16Mi}")+"]"),
	"guaranteed": pod("guaranteed", "containers: ["+container("app", "limits: {cpu: 400m, memory: 48Mi}")+"]"),
	"memory":     pod("memory", "containers: ["+container("app", "limits: {memory: 40Mi}")+"]"),
	"podlevel": pod("podlevel", "resources: {requests: {cpu: 150m, memory: 50Mi}, limits: {cpu: 1800m, memory: 100Mi}}, containers: ["+
		container("own", "requests: {cpu: 100m, memory: 20Mi}, limits: {memory: 60Mi}")+", "+container("shared", "")+"]"),
	"sidecar": pod("sidecar", "initContainers: [{restartPolicy: Always, "+
		container("proxy", "requests: {cpu: 20m, memory: 8Mi}, limits: {cpu: 1100m, memory: 24Mi}")[1:]+"], containers: ["+
		container("app", "requests: {cpu: 30m, memory: 8Mi}, limits: {cpu: 1200m, memory: 40Mi}")+"]"),
}

// reserved reserves 150m CPU, 80Mi memory and 800 PIDs in total.
const reserved = `
kubeReserved: {cpu: 50m, memory: 30Mi, pid: "300"}
systemReserved: {cpu: 100m, memory: 50Mi, pid: "500"}
`

func TestBounds(t *testing.T) {
	n := startNode(t, reserved+"podPidsLimit: 200\n")
	compare(t, "bounds", append(parentCgroups, podCgroups(n.run(manifests, running))...))
}

// The reference kubelet exits if there is no cpuset controller, as on the cgroup v2 machine. The
// table for v2 is computed from its formulas.
func TestReserved(t *testing.T) {
	if isReference() && hierarchy.Version == 2 {
		t.Skip("the reference kubelet needs a cpuset controller")
	}
	n := startNode(t, reserved+`
kubeReservedCgroup: `+kubeCgroup+`
systemReservedCgroup: `+systemCgroup+`
enforceNodeAllocatable: [pods, kube-reserved, system-reserved-compressible]
`)
	kube, system := cgroupRow{"kube", kubeCgroup}, cgroupRow{"system", systemCgroup}
	err := n.kubelet.await(func() error { // the kernel's default is 1024 on v1 and 100 on v2
		if weight := read(t, system, boundFiles[hierarchy.Version][0]); weight == "1024" || weight == "100" {
			return errors.New("reserved resources are not enforced")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "reserved", append(parentCgroups, kube, system))
}

// Features of cgroup v2: memory protection and memory throttling. CPU limits are disabled here.
// These pods get no swap, because static pods are critical.
func TestTiered(t *testing.T) {
	skipUnlessOnMachine(t, false)
	if hierarchy.Version == 1 {
		t.Skip("needs cgroup v2")
	}
	n := startNode(t, `
memoryReservationPolicy: TieredReservation
memoryThrottlingFactor: 0.8
memorySwap: {swapBehavior: LimitedSwap}
singleProcessOOMKill: true
cpuCFSQuota: false
`)
	some := map[string]string{"burstable": manifests["burstable"], "guaranteed": manifests["guaranteed"], "podlevel": manifests["podlevel"]}
	compare(t, "tiered", append(parentCgroups, podCgroups(n.run(some, running))...))
}
