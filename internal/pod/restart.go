package pod

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// ReasonRestartingAll is why a container ended, or waits, that another container's exit had
// run anew together with all others of its pod.
const ReasonRestartingAll = "RestartingAllContainers"

// ShouldRestart decides whether a container that exited with this code is to run again.
// A container's own rules come first, then its own policy, then the pod's. An ordinary init
// container that succeeded has done its part, whatever its rules and policy say.
func ShouldRestart(p *v1.Pod, c *v1.Container, kind ContainerKind, exitCode int32) bool {
	if kind == Ephemeral {
		return false
	}
	action := matchingAction(c, exitCode)
	if action == v1.ContainerRestartRuleActionRestartAllContainers {
		return true
	}
	if kind == Init && !IsSidecar(c) && exitCode == 0 {
		return false
	}
	if action == v1.ContainerRestartRuleActionRestart {
		return true
	}
	switch restartPolicy(p, c) {
	case v1.RestartPolicyNever:
		return false
	case v1.RestartPolicyOnFailure:
		return exitCode != 0
	default:
		return true
	}
}

// RestartsIfKilled reports whether a container that is killed for its health is to run
// again. Its rules have no say: they look at exit codes, and it has none yet.
func RestartsIfKilled(p *v1.Pod, c *v1.Container) bool {
	return restartPolicy(p, c) != v1.RestartPolicyNever
}

// ShouldRun reports whether a container that is not running is to run. It is judged by its latest
// instance; by the status shown of it where the runtime knows none; and where nobody knows
// of it, it never ran.
func ShouldRun(p *v1.Pod, c *v1.Container, kind ContainerKind, latest *Container, shown *v1.ContainerStatus) bool {
	if latest != nil {
		return latest.State != Exited || ShouldRestart(p, c, kind, latest.ExitCode)
	}
	if shown == nil {
		return true
	}
	return ShouldRunByStatus(p, c, kind, shown)
}

// ShouldRunByStatus is ShouldRun for a container of which only the status is known.
func ShouldRunByStatus(p *v1.Pod, c *v1.Container, kind ContainerKind, shown *v1.ContainerStatus) bool {
	end := LastTermination(shown)
	return end == nil || end.Reason == ReasonRestartingAll || ShouldRestart(p, c, kind, end.ExitCode)
}

// LastTermination is how a container that does not run ended last; nil if it runs, or never ran.
func LastTermination(shown *v1.ContainerStatus) *v1.ContainerStateTerminated {
	switch {
	case shown.State.Terminated != nil:
		return shown.State.Terminated
	case shown.State.Running != nil:
		return nil
	}
	return shown.LastTerminationState.Terminated
}

// RestartsAll reports whether a container that exited with this code takes all containers
// of its pod along.
func RestartsAll(c *v1.Container, exitCode int32) bool {
	return matchingAction(c, exitCode) == v1.ContainerRestartRuleActionRestartAllContainers
}

// MayRestartAll reports whether any container of the pod could do that.
func MayRestartAll(p *v1.Pod) bool {
	for c := range Containers(p) {
		for _, rule := range c.RestartPolicyRules {
			if rule.Action == v1.ContainerRestartRuleActionRestartAllContainers {
				return true
			}
		}
	}
	return false
}

// RestartingAll reports whether a container has exited that takes all others along. It
// stays true for as long as that exit can be seen, which is until everything else is gone.
func RestartingAll(p *v1.Pod, o *Observed) bool {
	for c, kind := range Containers(p) {
		if kind == Ephemeral {
			continue
		}
		if latest := o.Latest(c.Name); latest != nil && latest.State == Exited && RestartsAll(c, latest.ExitCode) {
			return true
		}
	}
	return false
}

// restartPolicy is the policy that holds for one container.
func restartPolicy(p *v1.Pod, c *v1.Container) v1.RestartPolicy {
	if c.RestartPolicy != nil {
		return v1.RestartPolicy(*c.RestartPolicy)
	}
	return p.Spec.RestartPolicy
}

// matchingAction is what the first rule that matches asks for, "" where none does.
func matchingAction(c *v1.Container, exitCode int32) v1.ContainerRestartRuleAction {
	for _, rule := range c.RestartPolicyRules {
		if matches(rule, exitCode) {
			return rule.Action
		}
	}
	return ""
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
