package podsync

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
)

// sized returns a pod whose containers a and b have these CPU and memory limits; "" is none.
func sized(cpuA, memoryA, cpuB, memoryB string) *v1.Pod {
	limits := func(cpu, memory string) v1.ResourceRequirements {
		list := v1.ResourceList{}
		for name, amount := range map[v1.ResourceName]string{v1.ResourceCPU: cpu, v1.ResourceMemory: memory} {
			if amount != "" {
				list[name] = resource.MustParse(amount)
			}
		}
		return v1.ResourceRequirements{Limits: list, Requests: list}
	}
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Resources: limits(cpuA, memoryA)}, {Name: "b", Resources: limits(cpuB, memoryB)}}}}
	p.UID, p.Status.QOSClass = "u", v1.PodQOSBurstable
	return p
}

// node records what is done to a pod, and fails calls that begin with refuse.
type node struct {
	Runtime
	Cgroups
	mu     sync.Mutex
	did    []string
	refuse string
	actual pod.Resources
	used   uint64
	usedBy map[string]uint64
}

func (n *node) do(format string, args ...any) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	n.did = append(n.did, text)
	if n.refuse != "" && strings.HasPrefix(text, n.refuse) {
		return errors.New("refused")
	}
	return nil
}

func (n *node) UpdateResources(_ context.Context, p *v1.Pod, c *v1.Container, id string) error {
	if c == nil {
		return n.do("update sandbox %s %s", id, sum(p))
	}
	return n.do("update %s %s", id, c.Resources.Limits.Cpu())
}
func (n *node) EnsurePod(p *v1.Pod) error                  { return n.do("cgroup %s", sum(p)) }
func (n *node) Get(types.UID) (pod.Resources, bool)        { return n.actual, true }
func (n *node) Note(_ types.UID, r pod.Resources)          { n.actual = r }
func (n *node) Change(_ types.UID, f func(*pod.Resources)) { f(&n.actual) }
func (n *node) Forget(types.UID)                           {}
func (n *node) Memory(context.Context, *v1.Pod, *pod.Observed) (uint64, map[string]uint64, error) {
	return n.used, n.usedBy, nil
}

// notes is one of the state files.
type notes struct {
	*node
	name string
}

func (f notes) Written(context.Context) error { return f.do("write %s", f.name) }

func sum(p *v1.Pod) string {
	var milli int64
	for _, c := range p.Spec.Containers {
		milli += c.Resources.Limits.Cpu().MilliValue()
	}
	return fmt.Sprintf("%dm", milli)
}

// resizing returns steps that act on n.
func resizing(n *node) *Steps {
	return &Steps{deps: Deps{Runtime: n, Cgroups: n, Resizing: Resizing{Allocated: notes{n, "given"}, Actual: notes{n, "actual"}, Usage: n}}}
}

// inBox is a pod with a running sandbox.
var inBox = &pod.Observed{Sandboxes: []pod.Sandbox{{ID: "box", Ready: true}}}

func updates(p *v1.Pod, have pod.Resources) (all []plan.Update) {
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		all = append(all, plan.Update{Container: c, ID: c.Name, Have: have.ContainerAmounts(c.Name)})
	}
	return all
}

func TestResizeOrder(t *testing.T) {
	before := sized("1", "1Gi", "1", "1Gi")
	for name, c := range map[string]struct {
		to     *v1.Pod
		refuse string
		want   []string
		has    string // of a, of b
	}{
		"both grow, pod limits first": {to: sized("2", "1Gi", "2", "1Gi"), has: "2 2",
			want: []string{"update sandbox box 4000m", "cgroup 4000m", "update a 2", "update b 2", "cgroup 4000m"}},
		"both shrink, pod limits last": {to: sized("500m", "1Gi", "500m", "1Gi"), has: "500m 500m",
			want: []string{"cgroup 2000m", "update a 500m", "update b 500m", "update sandbox box 1000m", "cgroup 1000m"}},
		"container that shrinks comes first": {to: sized("2", "1Gi", "500m", "1Gi"), has: "2 500m",
			want: []string{"update sandbox box 3000m", "cgroup 3000m", "update b 500m", "update a 2", "update sandbox box 2500m", "cgroup 2500m"}},
		"runtime refuses the pod's resize": {to: sized("2", "1Gi", "1", "1Gi"), refuse: "update sandbox", has: "1 1", want: []string{"update sandbox box 3000m"}},
		"second container fails": {to: sized("2", "1Gi", "2", "1Gi"), refuse: "update b", has: "2 1",
			want: []string{"update sandbox box 4000m", "cgroup 4000m", "update a 2", "update b 2"}},
		"checkpoint fails": {to: sized("2", "1Gi", "2", "1Gi"), refuse: "write given", has: "1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			n := &node{actual: pod.EffectiveResources(before), refuse: c.refuse}
			err := resizing(n).tryResize(t.Context(), c.to, inBox, updates(c.to, n.actual))
			if (err != nil) != (c.refuse != "") {
				t.Errorf("the error is %v", err)
			}
			if len(n.did) < 2 || !strings.HasPrefix(n.did[0], "write") || !strings.HasPrefix(n.did[1], "write") {
				t.Fatalf("not written to disk first: %q", n.did)
			}
			if diff := cmp.Diff(c.want, n.did[2:], cmp.Transformer("", func(s []string) string { return strings.Join(s, "\n") })); diff != "" {
				t.Error(diff)
			}
			limit := func(name string) string { l := n.actual.Containers[name].Limits; return l.Cpu().String() }
			if has := limit("a") + " " + limit("b"); has != c.has {
				t.Errorf("limits in force are %s, want %s", has, c.has)
			}
		})
	}
}

func TestGuardMemory(t *testing.T) {
	const mib = 1 << 20
	before := sized("1", "100Mi", "1", "100Mi")
	for name, c := range map[string]struct {
		to           *v1.Pod
		used, ofA, b uint64
		want         string
	}{
		"grows":                                       {to: sized("1", "200Mi", "1", "100Mi"), used: 190 * mib, ofA: 95 * mib, b: 95 * mib},
		"limit shrinks but stays above usage":         {to: sized("1", "50Mi", "1", "100Mi"), used: 60 * mib, ofA: 40 * mib, b: 20 * mib},
		"limit below the container's usage":           {to: sized("1", "30Mi", "1", "100Mi"), used: 60 * mib, ofA: 40 * mib, b: 20 * mib, want: `attempting to set container "a" memory limit (31457280) below current usage (41943040)`},
		"limit below the pod's usage":                 {to: sized("1", "50Mi", "1", "50Mi"), used: 110 * mib, ofA: 40 * mib, b: 40 * mib, want: "attempting to set pod memory limit (104857600) below current usage (115343360)"},
		"one limit grows and one shrinks below usage": {to: sized("1", "300Mi", "1", "30Mi"), used: 90 * mib, ofA: 40 * mib, b: 40 * mib, want: `attempting to set container "b" memory limit (31457280) below current usage (41943040)`},
		"memory limits do not change":                 {to: sized("9", "100Mi", "9", "100Mi"), used: 300 * mib, ofA: 200 * mib, b: 200 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			n := &node{used: c.used, usedBy: map[string]uint64{"a": c.ofA, "b": c.b}}
			have := pod.EffectiveResources(before)
			err := resizing(n).guardMemory(t.Context(), c.to, inBox, have, updates(c.to, have))
			switch {
			case c.want == "" && err != nil, c.want != "" && err == nil:
				t.Errorf("the error is %v", err)
			case err != nil && err.Error() != "cannot decrease memory limits: "+c.want:
				t.Errorf("the error is %q", err)
			}
		})
	}
	t.Run("container without usage", func(t *testing.T) {
		to, have := sized("1", "50Mi", "1", "100Mi"), pod.EffectiveResources(before)
		err := resizing(&node{}).guardMemory(t.Context(), to, inBox, have, updates(to, have))
		if err == nil || !strings.Contains(err.Error(), `missing container "a" memory usage`) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestLargest(t *testing.T) {
	for name, c := range map[string]struct {
		to, have *v1.Pod
		want     string // limit of a, memory limit of a
	}{
		"grows":                        {sized("2", "2Gi", "1", "1Gi"), sized("1", "1Gi", "1", "1Gi"), "2 2Gi"},
		"shrinks":                      {sized("1", "1Gi", "1", "1Gi"), sized("2", "2Gi", "1", "1Gi"), "2 2Gi"},
		"CPU shrinks and memory grows": {sized("1", "2Gi", "1", "1Gi"), sized("2", "1Gi", "1", "1Gi"), "2 2Gi"},
		"a limit is added":             {sized("1", "1Gi", "1", "1Gi"), sized("", "1Gi", "1", "1Gi"), "0 1Gi"},
		"a limit is removed":           {sized("", "1Gi", "1", "1Gi"), sized("1", "1Gi", "1", "1Gi"), "0 1Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			limits := largest(c.to, pod.EffectiveResources(c.have)).Spec.Containers[0].Resources.Limits
			if got := limits.Cpu().String() + " " + limits.Memory().String(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
