package admit

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// namedPod returns a pod with these requests. Its name begins with its QoS class.
func namedPod(name string, cpu, memory string, change ...func(*v1.Pod)) *v1.Pod {
	p := newPod(change...)
	p.Name = name
	if cpu == "" {
		return p
	}
	resources := &p.Spec.Containers[0].Resources
	resources.Requests = amounts("cpu", cpu, "memory", memory)
	if strings.HasPrefix(name, "guaranteed") {
		resources.Limits = resources.Requests
	}
	return p
}

func TestVictims(t *testing.T) {
	critical := namedPod("critical", "1", "1Gi", func(p *v1.Pod) { p.Spec.Priority = ptr.To[int32](2000000000) })
	lower := func(p *v1.Pod) { p.Spec.Priority = ptr.To[int32](2000000000 - 1) }
	cpu := func(amount int64) []Shortage {
		return []Shortage{{Resource: v1.ResourceCPU, Requested: amount}}
	}
	for _, test := range []struct {
		name      string
		others    []*v1.Pod
		shortages []Shortage
		want      string
		err       string
	}{
		{name: "burstable_before_guaranteed", shortages: cpu(500), want: "burstable",
			others: []*v1.Pod{namedPod("guaranteed", "1", "1Gi"), namedPod("burstable", "1", "1Gi"), namedPod("besteffort", "", "")}},
		{name: "smallest_sufficient_pod", shortages: cpu(500), want: "burstable-b",
			others: []*v1.Pod{namedPod("burstable-a", "900m", "2Gi"), namedPod("burstable-b", "900m", "1Gi"), namedPod("burstable-c", "100m", "1Mi")}},
		{name: "several_if_one_is_not_enough", shortages: cpu(1500), want: "burstable-a burstable-b",
			others: []*v1.Pod{namedPod("burstable-a", "1", "1Gi"), namedPod("burstable-b", "600m", "1Gi"), namedPod("burstable-c", "400m", "1Gi")}},
		{name: "guaranteed_only_for_the_rest", shortages: cpu(1500), want: "burstable guaranteed-b",
			others: []*v1.Pod{namedPod("guaranteed-a", "2", "1Gi"), namedPod("guaranteed-b", "1", "1Gi"), namedPod("burstable", "900m", "1Gi")}},
		{name: "pod_count_limit", shortages: []Shortage{{v1.ResourcePods, 1, 3, 3}}, want: "besteffort",
			others: []*v1.Pod{namedPod("guaranteed", "1", "1Gi"), namedPod("besteffort", "", ""), namedPod("burstable", "1", "1Gi")}},
		{name: "two_resources", shortages: []Shortage{{v1.ResourceCPU, 1000, 0, 0}, {v1.ResourceMemory, 1 << 30, 0, 0}}, want: "burstable-b",
			others: []*v1.Pod{namedPod("burstable-a", "1", "1Mi"), namedPod("burstable-b", "1", "1Gi"), namedPod("burstable-c", "10m", "1Gi")}},
		{name: "critical_pod_of_lower_priority", shortages: cpu(500), want: "burstable", others: []*v1.Pod{namedPod("burstable", "1", "1Gi", lower)}},
		{name: "no_victim_of_same_priority", shortages: cpu(500), err: "no set of running pods found to reclaim resources: [(res: cpu, q: 500), ]", others: []*v1.Pod{critical}},
		{name: "all_victims_are_not_enough", shortages: cpu(1500), err: "no set of running pods found to reclaim resources: [(res: cpu, q: 500), ]", others: []*v1.Pod{namedPod("burstable", "1", "1Gi")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			victims, err := Victims(critical, test.others, test.shortages)
			var names []string
			for _, v := range victims {
				names = append(names, v.Name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Errorf("got %v, want %q", err, test.err)
			}
		})
	}
}
