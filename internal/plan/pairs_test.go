package plan_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Every state of pods with two containers is tested: each policy of the pod, each restart policy and
// rule of both containers, each situation of both, in a sandbox that is ready, not ready or new.
func TestEveryPairOfContainers(t *testing.T) {
	if testing.Short() {
		t.Skip("half a million states: skipped with -short")
	}
	for _, pair := range []string{"ia", "sa", "ab"} {
		for _, policy := range []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever} {
			t.Run(fmt.Sprintf("%s %s", pair, policy), func(t *testing.T) {
				t.Parallel()
				count := 0
				for _, s := range pairs(policy, pair) {
					count += everySituation(t, s)
				}
				t.Logf("%d states", count)
			})
		}
	}
}

// pairs returns the pods of these two containers. Only sidecars and main containers have probes.
func pairs(policy v1.RestartPolicy, names string) []spec {
	first, second := rune(names[0]), rune(names[1])
	var all []spec
	for _, v := range variants(kindOf(first)) {
		for _, w := range variants(kindOf(second)) {
			p := &v1.Pod{}
			p.UID = "uid"
			p.Spec.RestartPolicy = policy
			one, two := v.container(string(first), first != 'i'), w.container(string(second), true)
			if kind, _ := kindOf(first); kind == pod.Init {
				p.Spec.InitContainers = []v1.Container{one}
			} else {
				p.Spec.Containers = []v1.Container{one}
			}
			p.Spec.Containers = append(p.Spec.Containers, two)
			all = append(all, spec{name: fmt.Sprintf("%s %c=%s %c=%s", policy, first, v.name, second, w.name), pod: p})
		}
	}
	return all
}

// everySituation checks the invariants in every state of the pod.
func everySituation(t *testing.T, s spec) (count int) {
	t.Helper()
	var containers []*v1.Container
	for c := range pod.Containers(s.pod) {
		containers = append(containers, c)
	}
	for box := range 3 {
		for _, one := range situations(containers[0]) {
			for _, two := range situations(containers[1]) {
				w := newWorld(t, s.name, s.pod)
				w.sandbox(box == 0)
				w.put(containers[0].Name, one)
				w.put(containers[1].Name, two)
				if box == 2 {
					w.sandbox(true)
				}
				w.status = w.compute()
				w.check(&w.status, w.plan())
				count++
			}
		}
	}
	return count
}
