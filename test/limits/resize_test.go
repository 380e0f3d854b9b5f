package limits

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// resizes are applied to the pods one after another.
var resizes = []struct{ pod, spec string }{
	{"burstable", "containers: [{name: limited, resources: {requests: {cpu: 200m}, limits: {cpu: 1600m}}}]"},
	{"burstable", "containers: [{name: limited, resources: {requests: {memory: 48Mi}, limits: {memory: 96Mi}}}]"},
	{"burstable", "containers: [{name: limited, resources: {requests: {cpu: 60m, memory: 24Mi}, limits: {cpu: 1100m, memory: 56Mi}}}, {name: unlimited, resources: {requests: {cpu: 90m}}}]"},
	{"guaranteed", "containers: [{name: app, resources: {requests: {cpu: 600m, memory: 64Mi}, limits: {cpu: 600m, memory: 64Mi}}}]"},
	{"guaranteed", "containers: [{name: app, resources: {requests: {cpu: 300m, memory: 40Mi}, limits: {cpu: 300m, memory: 40Mi}}}]"},
	{"podlevel", "resources: {requests: {cpu: 250m, memory: 60Mi}, limits: {cpu: 1700m, memory: 120Mi}}"},
	{"podlevel", "resources: {requests: {cpu: 150m, memory: 50Mi}, limits: {cpu: 1500m, memory: 90Mi}}, containers: [{name: own, resources: {limits: {memory: 70Mi}}}]"},
}

// podLevel is a pod with pod-level resources. Its container without a CPU request starts with the weight of
// the pod's limit, and has the least weight from the first resize on.
var podLevel = pod("podlevel", "resources: {requests: {cpu: 150m, memory: 50Mi}, limits: {cpu: 1800m, memory: 100Mi}}, containers: ["+
	container("own", "requests: {cpu: 100m, memory: 20Mi}, limits: {memory: 60Mi}")+", "+container("shared", "requests: {cpu: 20m}")+", "+container("without", "")+"]")

// TestResized resizes running pods: the cgroups have the new values, and no container restarts.
func TestResized(t *testing.T) {
	c := startCluster(t, "")
	names := []string{"burstable", "guaranteed", "podlevel"}
	before := map[string]string{}
	for _, manifest := range []string{manifests["burstable"], manifests["guaranteed"], podLevel} {
		c.create(manifest)
	}
	table := newTable()
	for _, name := range names {
		p := c.awaitPod(name, running)
		before[name] = containerIDs(p)
		table.add(t, "0 ", podCgroups([]v1.Pod{*p}))
	}
	for i, r := range resizes {
		p := c.resize(r.pod, r.spec)
		if now := containerIDs(p); now != before[r.pod] {
			t.Errorf("resize %d: containers of %s are %s, were %s", i+1, r.pod, now, before[r.pod])
		}
		table.add(t, fmt.Sprintf("%d ", i+1), podCgroups([]v1.Pod{*p}))
	}
	table.compare(t, "resized")
}

// TestSwap checks that pods may use swap in proportion to their memory requests.
func TestSwap(t *testing.T) {
	c := startCluster(t, "memorySwap: {swapBehavior: LimitedSwap}\n")
	var pods []v1.Pod
	names := []string{"besteffort", "burstable", "guaranteed", "memory"}
	for _, name := range names {
		c.create(manifests[name])
	}
	for _, name := range names {
		pods = append(pods, *c.awaitPod(name, running))
	}
	compare(t, "swap", podCgroups(pods))
}

// containerIDs returns the IDs and restart counts of the pod's containers.
func containerIDs(p *v1.Pod) (ids string) {
	for _, s := range p.Status.ContainerStatuses {
		ids += fmt.Sprintf("%s %s %d; ", s.Name, s.ContainerID, s.RestartCount)
	}
	return ids
}
