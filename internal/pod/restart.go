package pod

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// ShouldRestart decides whether a container that exited with this code is to run again.
// A container's own rules come first, then its own policy, then the pod's.
func ShouldRestart(p *v1.Pod, c *v1.Container, kind ContainerKind, exitCode int32) bool {
	if kind == Ephemeral {
		return false
	}
	for _, rule := range c.RestartPolicyRules {
		if matches(rule, exitCode) {
			return rule.Action == v1.ContainerRestartRuleActionRestart
		}
	}
	switch restartPolicy(p, c, kind) {
	case v1.RestartPolicyNever:
		return false
	case v1.RestartPolicyOnFailure:
		return exitCode != 0
	default:
		return true
	}
}

// restartPolicy is the policy that holds for one container. An ordinary init container of
// an Always pod is not run again once it succeeded.
func restartPolicy(p *v1.Pod, c *v1.Container, kind ContainerKind) v1.RestartPolicy {
	policy := p.Spec.RestartPolicy
	if c.RestartPolicy != nil {
		policy = v1.RestartPolicy(*c.RestartPolicy)
	}
	if kind == Init && !IsSidecar(c) && policy == v1.RestartPolicyAlways {
		return v1.RestartPolicyOnFailure
	}
	return policy
}

func matches(rule v1.ContainerRestartRule, exitCode int32) bool {
	if rule.ExitCodes == nil {
		return false
	}
	in := slices.Contains(rule.ExitCodes.Values, exitCode)
	switch rule.ExitCodes.Operator {
	case v1.ContainerRestartRuleOnExitCodesOpIn:
		return in
	case v1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !in
	}
	return false
}
