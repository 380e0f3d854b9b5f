package limits

import (
	"errors"
	"fmt"
	"testing"
)

// pod is a manifest; spec are the fields beside those that all have.
func pod(name, spec string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {hostNetwork: true, terminationGracePeriodSeconds: 1, %s}\n", name, spec)
}

// container is an element of a pod's containers that waits for its end.
func container(name, resources string) string {
	return fmt.Sprintf("{name: %s, image: docker.io/library/busybox:1.36, command: [sleep, '1000'], resources: {%s}}", name, resources)
}

// kinds are the pods whose bounds are read. Limits of CPU are generous: a container's first
// steps are the runtime's, and bounded by them too.
var kinds = map[string]string{
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

// reserved is kept from pods: together 150m of CPU, 80Mi of memory and 800 processes.
const reserved = `
kubeReserved: {cpu: 50m, memory: 30Mi, pid: "300"}
systemReserved: {cpu: 100m, memory: 50Mi, pid: "500"}
`

func TestBounds(t *testing.T) {
	n := startNode(t, reserved+"podPidsLimit: 200\n")
	compare(t, "bounds", append(podsGroups, groupsOf(n.run(kinds, running))...))
}

// The reference kubelet ends where a kernel has no cpuset controller, as on the machine with
// cgroup v2. What it would write there besides is known.
func TestReserved(t *testing.T) {
	if isReference() && hierarchy.Version == 2 {
		t.Skip("the reference kubelet needs a cpuset controller")
	}
	n := startNode(t, reserved+`
kubeReservedCgroup: `+kubeGroup+`
systemReservedCgroup: `+systemGroup+`
enforceNodeAllocatable: [pods, kube-reserved, system-reserved-compressible]
`)
	kube, system := group{"kube", kubeGroup}, group{"system", systemGroup}
	err := n.kubelet.await(func() error { // the kernel's own weight is 1024 on v1, 100 on v2
		if weight := read(t, system, boundFiles[hierarchy.Version][0]); weight == "1024" || weight == "100" {
			return errors.New("what is reserved is not enforced")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "reserved", append(podsGroups, kube, system))
}

// What cgroup v2 alone can do: requested memory is protected, its use slowed down. Limits of
// CPU are not enforced here. These pods get no swap, as they are static: the node is taken
// not to do without them.
func TestTiered(t *testing.T) {
	onMachine(t, false)
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
	some := map[string]string{"burstable": kinds["burstable"], "guaranteed": kinds["guaranteed"], "podlevel": kinds["podlevel"]}
	compare(t, "tiered", append(podsGroups, groupsOf(n.run(some, running))...))
}
