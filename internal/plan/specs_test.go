package plan_test

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// A variant is a restart policy with rules of one container.
type variant struct {
	policy v1.ContainerRestartPolicy // "" for none of its own
	rules  []v1.ContainerRestartRule
	name   string
}

// exits are the exit codes of these tests. Rules match the last one.
var exits = []int32{0, 1, 7}

// variants generates all variants that the API allows for a container of this kind: rules need a
// policy, a sidecar is an init container with policy Always, and ephemeral containers have neither.
func variants(kind pod.ContainerKind, sidecar bool) []variant {
	rules := []variant{{}}
	for _, action := range []v1.ContainerRestartRuleAction{v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers} {
		for _, on := range []v1.ContainerRestartRuleOnExitCodes{
			{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{7}},
			{Operator: v1.ContainerRestartRuleOnExitCodesOpNotIn, Values: []int32{0, 137}},
		} {
			rules = append(rules, variant{
				rules: []v1.ContainerRestartRule{{Action: action, ExitCodes: &on}},
				name:  fmt.Sprintf("+%s%s%v", action, on.Operator, on.Values),
			})
		}
	}
	var all []variant
	for _, policy := range []v1.ContainerRestartPolicy{"", v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyOnFailure, v1.ContainerRestartPolicyNever} {
		isSidecar := kind == pod.Init && policy == v1.ContainerRestartPolicyAlways
		if isSidecar != sidecar || (kind == pod.Ephemeral && policy != "") {
			continue
		}
		for _, r := range rules {
			if policy != "" || r.rules == nil {
				all = append(all, variant{policy: policy, rules: r.rules, name: string(policy) + r.name})
			}
		}
	}
	return all
}

func (v variant) container(name string, probed bool) v1.Container {
	c := v1.Container{Name: name, Image: "image", RestartPolicyRules: v.rules}
	if v.policy != "" {
		c.RestartPolicy = &v.policy
	}
	if probed {
		c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = &v1.Probe{}, &v1.Probe{}, &v1.Probe{}
	}
	return c
}

// A spec is a pod, and the container whose variant it tests.
type spec struct {
	name   string
	pod    *v1.Pod
	varied string
}

// specs generates pods: every policy of the pod, every order of an init container (i) and a sidecar
// (s), two main containers (a with probes, b without) and an ephemeral one (e), and each container in
// turn with all its variants.
func specs() []spec {
	var all []spec
	for _, policy := range []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever} {
		for _, order := range []string{"a", "ia", "sa", "isa", "sia"} {
			for _, varied := range order + "e" {
				kind, sidecar := kindOf(varied)
				for _, v := range variants(kind, sidecar) {
					name := fmt.Sprintf("%s %s %c=%s", policy, order, varied, v.name)
					all = append(all, spec{name: name, pod: build(policy, order, varied, v), varied: string(varied)})
				}
			}
		}
	}
	return all
}

func kindOf(name rune) (kind pod.ContainerKind, sidecar bool) {
	switch name {
	case 'i':
		return pod.Init, false
	case 's':
		return pod.Init, true
	case 'e':
		return pod.Ephemeral, false
	}
	return pod.Main, false
}

func build(policy v1.RestartPolicy, order string, varied rune, v variant) *v1.Pod {
	p := &v1.Pod{}
	p.UID = "uid"
	p.Spec.RestartPolicy = policy
	for _, name := range order + "be" {
		kind, sidecar := kindOf(name)
		used := variants(kind, sidecar)[0]
		if name == varied {
			used = v
		}
		c := used.container(string(name), strings.ContainsRune("sa", name))
		switch kind {
		case pod.Init:
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		case pod.Main:
			p.Spec.Containers = append(p.Spec.Containers, c)
		case pod.Ephemeral:
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon(c)})
		}
	}
	return p
}

// restarts implements the API's documentation of restarts: the first rule that matches decides, then
// the container's policy, then the pod's. Init containers do not restart after success, sidecars
// always restart, ephemeral containers never.
func restarts(p *v1.Pod, c *v1.Container, kind pod.ContainerKind, code int32) (one, all bool) {
	for _, r := range c.RestartPolicyRules {
		in := false
		for _, v := range r.ExitCodes.Values {
			in = in || v == code
		}
		if in == (r.ExitCodes.Operator == v1.ContainerRestartRuleOnExitCodesOpIn) {
			if r.Action == v1.ContainerRestartRuleActionRestartAllContainers {
				return true, true
			}
			return kind != pod.Init || pod.IsSidecar(c) || code != 0, false
		}
	}
	policy := string(p.Spec.RestartPolicy)
	if c.RestartPolicy != nil {
		policy = string(*c.RestartPolicy)
	}
	switch {
	case kind == pod.Ephemeral:
		return false, false
	case kind == pod.Init && !pod.IsSidecar(c) && code == 0:
		return false, false
	case policy == "Never":
		return false, false
	case policy == "OnFailure":
		return code != 0, false
	}
	return true, false
}
