package runtime

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestContainerResources(t *testing.T) {
	half := 0.5
	v2 := func(edit func(*CgroupV2)) func(*Config, *Deps) {
		return func(c *Config, _ *Deps) {
			c.MemoryCapacity, c.Swap = 1<<30, Swap{Controller: true, Limited: true, Capacity: 1 << 20}
			c.CgroupV2 = &CgroupV2{MemoryQOS: &MemoryQOS{}}
			if edit != nil {
				edit(c.CgroupV2)
			}
		}
	}
	const burstable = `{containers: [{name: c, resources: {requests: {memory: 512Mi}, limits: {memory: 768Mi}}}]}`
	for name, c := range map[string]struct {
		spec string
		cfg  func(*Config, *Deps)
		want string // beyond huge pages
	}{
		"request without limit": {spec: `{containers: [{name: c, resources: {requests: {cpu: 250m}}}]}`, want: `{"cpuShares": 256, "cpuPeriod": 100000, "oomScoreAdj": 999}`},
		"limit without request": {spec: `{containers: [{name: c, resources: {limits: {cpu: 250m}}}]}`, want: `{"cpuShares": 256, "cpuPeriod": 100000, "cpuQuota": 25000, "oomScoreAdj": 999}`},
		"tiny limit":            {spec: `{containers: [{name: c, resources: {limits: {cpu: 1m}}}]}`, want: `{"cpuShares": 2, "cpuPeriod": 100000, "cpuQuota": 1000, "oomScoreAdj": 999}`},
		"CPU quota disabled": {spec: `{containers: [{name: c, resources: {limits: {cpu: 250m}}}]}`, cfg: func(c *Config, _ *Deps) { c.CPUQuota = false },
			want: `{"cpuShares": 256, "oomScoreAdj": 999}`},
		"pod-level limits": {spec: `{resources: {limits: {cpu: 500m, memory: 1Mi}, requests: {cpu: 100m}}, containers: [{name: c, resources: {limits: {cpu: 250m}}}]}`,
			want: `{"cpuShares": 256, "cpuPeriod": 100000, "cpuQuota": 25000, "memoryLimitInBytes": 1048576, "memorySwapLimitInBytes": 1048576, "oomScoreAdj": 999}`},
		"no swap controller": {spec: `{containers: [{name: c, resources: {limits: {memory: 1Mi}}}]}`, cfg: func(c *Config, _ *Deps) { c.Swap.Controller = false },
			want: `{"cpuShares": 2, "cpuPeriod": 100000, "memoryLimitInBytes": 1048576, "oomScoreAdj": 999}`},
		"node critical": {spec: `{priority: 2000001000, priorityClassName: system-node-critical, containers: [{name: c}]}`,
			want: `{"cpuShares": 2, "cpuPeriod": 100000, "oomScoreAdj": -997}`},
		"v2, burstable": {spec: burstable, cfg: v2(nil),
			want: `{"cpuShares": 2, "cpuPeriod": 100000, "memoryLimitInBytes": 805306368, "oomScoreAdj": 500,
				"unified": {"memory.oom.group": "1", "memory.swap.max": "524288", "memory.min": "0", "memory.low": "0"}}`},
		"v2, guaranteed gets no swap": {spec: `{containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Mi}, limits: {cpu: 1, memory: 1Mi}}}]}`,
			cfg: v2(func(v *CgroupV2) { v.MemoryQOS.Reserve = true; v.MemoryQOS.ThrottlingFactor = &half }),
			want: `{"cpuShares": 1024, "cpuPeriod": 100000, "cpuQuota": 100000, "memoryLimitInBytes": 1048576, "oomScoreAdj": -997,
				"unified": {"memory.oom.group": "1", "memory.swap.max": "0", "memory.min": "1048576"}}`},
		"v2, reserved and throttled": {spec: burstable, cfg: v2(func(v *CgroupV2) {
			v.MemoryQOS.Reserve = true
			v.MemoryQOS.ThrottlingFactor = &half
			v.SingleProcessOOMKill = true
		}),
			want: `{"cpuShares": 2, "cpuPeriod": 100000, "memoryLimitInBytes": 805306368, "oomScoreAdj": 500,
				"unified": {"memory.swap.max": "524288", "memory.low": "536870912", "memory.high": "671088640"}}`},
		"v2, container without limit is throttled at the node's memory": {spec: `{containers: [{name: c}]}`,
			cfg: v2(func(v *CgroupV2) {
				v.MemoryQOS.ThrottlingFactor = &half
				v.MemoryQOS.Allocatable = 1 << 20
			}),
			want: `{"cpuShares": 2, "cpuPeriod": 100000, "oomScoreAdj": 1000,
				"unified": {"memory.oom.group": "1", "memory.swap.max": "0", "memory.min": "0", "memory.low": "0", "memory.high": "524288"}}`},
		"v2 without memory QoS": {spec: `{containers: [{name: c}]}`, cfg: v2(func(v *CgroupV2) { v.MemoryQOS = nil }),
			want: `{"cpuShares": 2, "cpuPeriod": 100000, "oomScoreAdj": 1000, "unified": {"memory.oom.group": "1", "memory.swap.max": "0", "memory.high": "max"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.cfg)
			p := testPod(t, c.spec)
			want := &runtimeapi.LinuxContainerResources{}
			if err := protojson.Unmarshal([]byte(c.want), want); err != nil {
				t.Fatal(err)
			}
			want.HugepageLimits = []*runtimeapi.HugepageLimit{{PageSize: "2MB"}, {PageSize: "1GB"}}
			if diff := gocmp.Diff(want, b.ContainerResources(p, &p.Spec.Containers[0]), protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestHugePageLimits(t *testing.T) {
	b := newBench(t, nil)
	p := testPod(t, `{resources: {limits: {hugepages-2Mi: 8Mi, hugepages-1Gi: 1Gi}}, containers: [{name: c, resources: {limits: {hugepages-2Mi: 4Mi, hugepages-64Ki: 1Mi}}}]}`)
	want := []*runtimeapi.HugepageLimit{{PageSize: "2MB", Limit: 4 << 20}, {PageSize: "1GB", Limit: 1 << 30}}
	if diff := gocmp.Diff(want, b.hugePageLimits(p, &p.Spec.Containers[0]), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestOOMScore(t *testing.T) {
	const capacity = 1000 << 20
	for name, c := range map[string]struct {
		spec string
		want int64
	}{
		"request of a tenth of the node":          {`{containers: [{name: c, resources: {requests: {memory: 100Mi}}}]}`, 900},
		"request of the whole node":               {`{containers: [{name: c, resources: {requests: {memory: 1000Mi}}}]}`, 3},
		"no request next to a container with one": {`{containers: [{name: c}, {name: d, resources: {requests: {memory: 100Mi}}}]}`, 999},
		"best effort":                    {`{containers: [{name: c}]}`, 1000},
		"share of the pod-level request": {`{resources: {requests: {memory: 300Mi}}, containers: [{name: c, resources: {requests: {memory: 100Mi}}}, {name: d}]}`, 800},
		"sidecar without request scores like its main container": {`{initContainers: [{name: c, restartPolicy: Always}], containers: [{name: d, resources: {requests: {memory: 100Mi}}}, {name: e, resources: {requests: {memory: 200Mi}}}]}`, 900},
		"sidecar that requests more than its main container":     {`{initContainers: [{name: c, restartPolicy: Always, resources: {requests: {memory: 300Mi}}}], containers: [{name: d, resources: {requests: {memory: 100Mi}}}]}`, 700},
		"init container without request":                         {`{initContainers: [{name: c}], containers: [{name: d, resources: {requests: {memory: 100Mi}}}]}`, 999},
	} {
		t.Run(name, func(t *testing.T) {
			p := testPod(t, c.spec)
			first := &p.Spec.Containers[0]
			if len(p.Spec.InitContainers) > 0 {
				first = &p.Spec.InitContainers[0]
			}
			if got := oomScoreAdj(p, first, capacity); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

func TestSandboxResources(t *testing.T) {
	b := newBench(t, nil)
	p := testPod(t, `{overhead: {cpu: 100m, memory: 10Mi}, initContainers: [{name: i, resources: {requests: {cpu: 900m}}}],
		containers: [{name: a, resources: {requests: {cpu: 250m}, limits: {cpu: 1, memory: 1Mi}}}, {name: b, resources: {requests: {cpu: 250m}}}]}`)
	config, err := b.sandboxConfig(p, 2, "parent")
	if err != nil {
		t.Fatal(err)
	}
	want := &runtimeapi.LinuxContainerResources{CpuShares: 921, CpuPeriod: 100000, CpuQuota: 100000, MemoryLimitInBytes: 1 << 20}
	if diff := gocmp.Diff(want, config.Linux.Resources, protocmp.Transform()); diff != "" {
		t.Errorf("resources (-want +got)\n%s", diff)
	}
	want = &runtimeapi.LinuxContainerResources{CpuShares: 102, CpuPeriod: 100000, CpuQuota: 10000, MemoryLimitInBytes: 10 << 20}
	if diff := gocmp.Diff(want, config.Linux.Overhead, protocmp.Transform()); diff != "" {
		t.Errorf("overhead (-want +got)\n%s", diff)
	}
	if config.Metadata.Attempt != 2 || config.Linux.CgroupParent != "parent" {
		t.Errorf("config %+v", config)
	}
	if got := b.overhead(&v1.Pod{}); got == nil || got.CpuShares != 0 {
		t.Errorf("overhead of none %v", got)
	}
}

// TestUpdateResources: at a resize, a container without a CPU request does not have the weight of the pod's
// limit any more.
func TestUpdateResources(t *testing.T) {
	b := newBench(t, nil)
	p := testPod(t, `{resources: {requests: {cpu: 100m}, limits: {cpu: 500m}},
		containers: [{name: a, resources: {requests: {cpu: 50m}}}, {name: b}, {name: c, resources: {requests: {memory: 1Mi}, limits: {memory: 2Mi}}}]}`)
	for i := range p.Spec.Containers {
		if err := b.UpdateResources(t.Context(), p, &p.Spec.Containers[i], p.Spec.Containers[i].Name); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"update a shares 51 quota 50000 memory 0", "update b shares 2 quota 50000 memory 0", "update c shares 2 quota 50000 memory 2097152"}
	if diff := gocmp.Diff(want, b.cri.calls); diff != "" {
		t.Errorf("calls (-want +got)\n%s", diff)
	}
	if got := b.ContainerResources(p, &p.Spec.Containers[1]).CpuShares; got != 512 {
		t.Errorf("a container that starts has %d shares, want those of the pod's limit", got)
	}
}
