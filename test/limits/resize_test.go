package limits

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// resizes are what is asked of the pods, one after another.
var resizes = []struct{ pod, spec string }{
	{"burstable", "containers: [{name: limited, resources: {requests: {cpu: 200m}, limits: {cpu: 1600m}}}]"},
	{"burstable", "containers: [{name: limited, resources: {requests: {memory: 48Mi}, limits: {memory: 96Mi}}}]"},
	{"burstable", "containers: [{name: limited, resources: {requests: {cpu: 60m, memory: 24Mi}, limits: {cpu: 1100m, memory: 56Mi}}}, {name: unlimited, resources: {requests: {cpu: 90m}}}]"},
	{"guaranteed", "containers: [{name: app, resources: {requests: {cpu: 600m, memory: 64Mi}, limits: {cpu: 600m, memory: 64Mi}}}]"},
	{"guaranteed", "containers: [{name: app, resources: {requests: {cpu: 300m, memory: 40Mi}, limits: {cpu: 300m, memory: 40Mi}}}]"},
	{"podlevel", "resources: {requests: {cpu: 250m, memory: 60Mi}, limits: {cpu: 1700m, memory: 120Mi}}"},
	{"podlevel", "resources: {requests: {cpu: 150m, memory: 50Mi}, limits: {cpu: 1500m, memory: 90Mi}}, containers: [{name: own, resources: {limits: {memory: 70Mi}}}]"},
}

// shareholder is a pod with resources of its own whose containers all ask for some: of one that
// does not, the reference kubelet forgets with a resize that it counts by the pod's limit.
var shareholder = pod("podlevel", "resources: {requests: {cpu: 150m, memory: 50Mi}, limits: {cpu: 1800m, memory: 100Mi}}, containers: ["+
	container("own", "requests: {cpu: 100m, memory: 20Mi}, limits: {memory: 60Mi}")+", "+container("shared", "requests: {cpu: 20m}")+"]")

// TestResized changes running pods: the kernel has what was asked for each time, and nothing
// restarts.
func TestResized(t *testing.T) {
	c := startCluster(t, "")
	names := []string{"burstable", "guaranteed", "podlevel"}
	before := map[string]string{}
	for _, manifest := range []string{kinds["burstable"], kinds["guaranteed"], shareholder} {
		c.create(manifest)
	}
	seen := newTable()
	for _, name := range names {
		p := c.awaitPod(name, running)
		before[name] = containers(p)
		seen.add(t, "0 ", groupsOf([]v1.Pod{*p}))
	}
	for i, r := range resizes {
		p := c.resize(r.pod, r.spec)
		if now := containers(p); now != before[r.pod] {
			t.Errorf("resize %d: containers of %s are %s, were %s", i+1, r.pod, now, before[r.pod])
		}
		seen.add(t, fmt.Sprintf("%d ", i+1), groupsOf([]v1.Pod{*p}))
	}
	seen.compare(t, "resized")
}

// TestSwap has pods use swap, each as much of it as its request is of the memory.
func TestSwap(t *testing.T) {
	c := startCluster(t, "memorySwap: {swapBehavior: LimitedSwap}\n")
	var pods []v1.Pod
	names := []string{"besteffort", "burstable", "guaranteed", "memory"}
	for _, name := range names {
		c.create(kinds[name])
	}
	for _, name := range names {
		pods = append(pods, *c.awaitPod(name, running))
	}
	compare(t, "swap", groupsOf(pods))
}

// containers tells whether containers are others, or were restarted.
func containers(p *v1.Pod) (ids string) {
	for _, s := range p.Status.ContainerStatuses {
		ids += fmt.Sprintf("%s %s %d; ", s.Name, s.ContainerID, s.RestartCount)
	}
	return ids
}
