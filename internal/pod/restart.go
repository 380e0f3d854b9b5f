package pod

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// ReasonRestartingAll is the reason of containers that are restarted because another container's exit
// restarts all containers.
const ReasonRestartingAll = "RestartingAllContainers"

// ShouldRestart reports whether a container that exited with this code restarts. The container's rules
// come first, then its policy, then the pod's. A successful init container that is no sidecar does not
// restart, unless a rule restarts all containers.
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

// RestartsIfKilled reports whether a container restarts that is killed because a probe failed. Its
// rules do not apply: they need an exit code.
func RestartsIfKilled(p *v1.Pod, c *v1.Container) bool {
	return restartPolicy(p, c) != v1.RestartPolicyNever
}

// ShouldRun reports whether a container that is not running should run. It depends on the latest
// instance or, if the runtime has none, on the status. A container with neither has never run.
func ShouldRun(p *v1.Pod, c *v1.Container, kind ContainerKind, latest *Container, status *v1.ContainerStatus) bool {
	if latest != nil {
		return latest.State != Exited || ShouldRestart(p, c, kind, latest.ExitCode)
	}
	if status == nil {
		return true
	}
	return ShouldRunByStatus(p, c, kind, status)
}

// ShouldRunByStatus is ShouldRun for a container without an instance.
func ShouldRunByStatus(p *v1.Pod, c *v1.Container, kind ContainerKind, status *v1.ContainerStatus) bool {
	end := LastTermination(status)
	return end == nil || end.Reason == ReasonRestartingAll || ShouldRestart(p, c, kind, end.ExitCode)
}

// LastTermination returns the last termination of a container, nil if it runs or has never run.
func LastTermination(status *v1.ContainerStatus) *v1.ContainerStateTerminated {
	switch {
	case status.State.Terminated != nil:
		return status.State.Terminated
	case status.State.Running != nil:
		return nil
	}
	return status.LastTerminationState.Terminated
}

// RestartsAll reports whether this exit code restarts all containers of the pod.
func RestartsAll(c *v1.Container, exitCode int32) bool {
	return matchingAction(c, exitCode) == v1.ContainerRestartRuleActionRestartAllContainers
}

// MayRestartAll reports whether any container has a rule that restarts all containers.
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

// RestartingAll reports whether a container has exited whose exit restarts all containers. It stays true
// until that instance is removed, which is after all others.
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

// restartPolicy returns the effective restart policy of a container.
func restartPolicy(p *v1.Pod, c *v1.Container) v1.RestartPolicy {
	if c.RestartPolicy != nil {
		return v1.RestartPolicy(*c.RestartPolicy)
	}
	return p.Spec.RestartPolicy
}

// matchingAction returns the action of the first rule that matches, "" if none does.
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
