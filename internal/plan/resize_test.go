package plan

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/pod"
)

// sized returns a pod whose containers have these limits and resize policies.
func sized(spec, cpu, memory string, policy ...v1.ContainerResizePolicy) *v1.Pod {
	p := parsePod(spec)
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			list[i].ResizePolicy = policy
			list[i].Resources.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
		}
	}
	return p
}

func TestResize(t *testing.T) {
	restart := func(name v1.ResourceName) v1.ContainerResizePolicy {
		return v1.ContainerResizePolicy{ResourceName: name, RestartPolicy: v1.RestartContainer}
	}
	for name, c := range map[string]struct {
		spec        string
		cpu, memory string // it had 1 and 1Gi
		policy      []v1.ContainerResizePolicy
		dead        string
		want        string
	}{
		"nothing changed":               {spec: "Always |a", cpu: "1", memory: "1Gi"},
		"CPU changes":                   {spec: "Always |a", cpu: "2", memory: "1Gi", want: "resize update a"},
		"memory changes":                {spec: "Always |a b", cpu: "1", memory: "2Gi", want: "resize update a update b"},
		"CPU change restarts by policy": {spec: "Never |a", cpu: "2", memory: "1Gi", policy: []v1.ContainerResizePolicy{restart(v1.ResourceCPU)}, want: "resize kill a start a"},
		"CPU change does not restart by memory policy":      {spec: "Always |a", cpu: "2", memory: "1Gi", policy: []v1.ContainerResizePolicy{restart(v1.ResourceMemory)}, want: "resize update a"},
		"sidecar is updated":                                {spec: "Always s^|a", cpu: "2", memory: "1Gi", want: "resize update s update a"},
		"running init container is updated":                 {spec: "Always i|a", cpu: "2", memory: "1Gi", want: "resize update i"},
		"running init container does not restart by policy": {spec: "Always i|a", cpu: "2", memory: "1Gi", policy: []v1.ContainerResizePolicy{restart(v1.ResourceCPU)}, want: "resize update i"},
		"restarting container is not updated":               {spec: "Always |a b", cpu: "2", memory: "1Gi", dead: "a", want: "resize update b start a"},
	} {
		t.Run(name, func(t *testing.T) {
			p, had := sized(c.spec, c.cpu, c.memory, c.policy...), pod.EffectiveResources(sized(c.spec, "1", "1Gi"))
			o := &pod.Observed{Sandboxes: []pod.Sandbox{{ID: "box", Ready: true, IPs: []string{"10.0.0.1"}}}}
			for k, kind := range pod.Containers(p) {
				if kind == pod.Main && strings.Contains(c.spec, "i|") {
					continue // not started yet
				}
				state := pod.Running
				if k.Name == c.dead {
					state = pod.Exited
				}
				o.Containers = append(o.Containers, pod.Container{ID: k.Name, Name: k.Name, SandboxID: "box", State: state})
			}
			got := Compute(Input{Pod: p, Observed: o, Hash: func(*v1.Container) string { return "" }, Actual: &had})
			if text := show(got); text != c.want {
				t.Errorf("plan is %q, want %q", text, c.want)
			}
			if got.Idle() != (c.want == "") {
				t.Errorf("idle is %v", got.Idle())
			}
			// A running init container does not count: it completes before the pod is initialized.
			if behind := had.ResizeInProgress(p, o); behind != (c.want != "" && c.want != "resize update i") {
				t.Errorf("behind is %v", behind)
			}
		})
	}
}

// show formats the part of a plan that a resize affects.
func show(a Actions) string {
	var words []string
	if a.Resize {
		words = append(words, "resize")
	}
	for _, u := range a.Update {
		words = append(words, "update "+u.ID)
	}
	for _, k := range a.Kill {
		words = append(words, fmt.Sprintf("kill %s", k.Container.ID))
	}
	for _, s := range a.Start {
		words = append(words, "start "+s.Container.Name)
	}
	return strings.Join(words, " ")
}
