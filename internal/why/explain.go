package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// explain returns the cause that comes first: a pod that ends is not starting, and one that failed is not ready.
func (in *input) explain() Cause {
	for _, f := range []func() *Cause{in.ending, in.failedPod, in.completed, in.blocked, in.waitingContainer, in.notReady} {
		if c := f(); c != nil {
			return *c
		}
	}
	return in.up()
}

// blocked is the step of the pod's start that fails or has not come back.
func (in *input) blocked() *Cause {
	if s := in.worst(func(s StepReport) bool {
		return (s.Kind > Admission || s.State == running) && !s.Kind.ends() && !isProbe(s.Kind)
	}); s != nil {
		return in.ofStep(s)
	}
	return nil
}

// worst returns the selected step that blocks: one that failed before one that runs, then by kind.
func (in *input) worst(selected func(StepReport) bool) *StepReport {
	var found *StepReport
	rank := func(s *StepReport) int {
		if s.State == failed || s.Class != Unclassified || s.Error != "" {
			return 0
		}
		return 1
	}
	for i := range in.steps {
		s := &in.steps[i]
		if s.State == done || !selected(*s) {
			continue
		}
		if found == nil || cmp.Or(cmp.Compare(rank(s), rank(found)), cmp.Compare(s.Kind, found.Kind)) < 0 {
			found = s
		}
	}
	return found
}

func isProbe(k Kind) bool { return k == Startup || k == Liveness || k == Readiness }

// waitingContainer is the first container that does not run though no step blocks it.
func (in *input) waitingContainer() *Cause {
	for c, kind := range pod.Containers(in.pod) {
		s := pod.FindStatus(in.status, c.Name)
		if s == nil || kind == pod.Ephemeral {
			continue
		}
		if w := s.State.Waiting; w != nil && s.LastTerminationState.Terminated != nil {
			return in.crashed(c, s, s.LastTerminationState.Terminated)
		}
		if t := s.State.Terminated; t != nil && (kind == pod.Main || t.ExitCode != 0) && in.pod.Spec.RestartPolicy != v1.RestartPolicyNever && (t.ExitCode != 0 || in.pod.Spec.RestartPolicy == v1.RestartPolicyAlways) {
			return in.crashed(c, s, t)
		}
		if kind == pod.Init && !pod.IsSidecar(c) && s.State.Running != nil {
			return &Cause{
				Where: "init container " + c.Name, What: "runs, and the containers after it wait until it has completed",
				Since: s.State.Running.StartedAt.Time, Fix: in.logs(c.Name, false) + ", if it takes too long",
			}
		}
	}
	return nil
}

// crashed describes a container that has ended and is started again.
func (in *input) crashed(c *v1.Container, s *v1.ContainerStatus, last *v1.ContainerStateTerminated) *Cause {
	cause := &Cause{Where: in.where(c.Name), Since: last.FinishedAt.Time, Attempts: int(s.RestartCount) + 1, Next: in.nextStart()}
	cause.What, cause.Fix, cause.Text = in.exit(c.Name, last)
	return cause
}

// exit says why a container ended.
func (in *input) exit(container string, last *v1.ContainerStateTerminated) (what, fix, text string) {
	for _, k := range []Kind{Liveness, Startup} {
		if s := in.step(Step{k, container}); s != nil && s.Class != Unclassified && !s.clock.After(last.FinishedAt.Time.Add(time.Second)) && last.Reason != reasonOOM {
			what, fix = probeWords(in.field(container), s)
			return "was stopped: " + what, fix, oneLine(s.Error)
		}
	}
	switch {
	case last.Reason == reasonOOM:
		return "was killed because it used more memory than its limit (OOMKilled)", in.field(container) + ".resources.limits.memory", ""
	case last.Signal != 0:
		return fmt.Sprintf("was ended by signal %d", last.Signal), in.logs(container, true), oneLine(last.Message)
	case last.ExitCode == 0:
		return "has completed, and is started again because of restartPolicy Always", "its program, or spec.restartPolicy", ""
	case last.ExitCode > 128 && last.ExitCode < 160:
		return fmt.Sprintf("was ended by signal %d (exit code %d)", last.ExitCode-128, last.ExitCode), in.logs(container, true), oneLine(last.Message)
	}
	return fmt.Sprintf("exits with code %d", last.ExitCode), in.logs(container, true), oneLine(last.Message)
}

// reasonOOM is the runtime's reason.
const reasonOOM = "OOMKilled"

// logs is a container's program, with the command that shows its log.
func (in *input) logs(container string, previous bool) string {
	flag := ""
	if previous {
		flag = " --previous"
	}
	return fmt.Sprintf("its program (kubectl logs -n %s %s -c %s%s)", in.pod.Namespace, in.pod.Name, container, flag)
}

func (in *input) nextStart() time.Time {
	if in.next.After(in.now) {
		return in.next
	}
	return time.Time{}
}

// notReady is why a pod whose containers run is not ready.
func (in *input) notReady() *Cause {
	if isReady(in.status) {
		return nil
	}
	for c, kind := range pod.Containers(in.pod) {
		s := pod.FindStatus(in.status, c.Name)
		if s == nil || s.State.Running == nil || kind == pod.Ephemeral || kind == pod.Init && !pod.IsSidecar(c) {
			continue
		}
		if cause := in.unready(c, s); cause != nil {
			return cause
		}
	}
	for _, gate := range in.pod.Spec.ReadinessGates {
		if i := slices.IndexFunc(in.status.Conditions, func(c v1.PodCondition) bool { return c.Type == gate.ConditionType }); i < 0 || in.status.Conditions[i].Status != v1.ConditionTrue {
			return &Cause{Where: "pod", What: fmt.Sprintf("its readiness gate %s is not True; the controller of that condition sets it", gate.ConditionType), Fix: "condition " + string(gate.ConditionType), Since: in.conditionSince(v1.PodReady)}
		}
	}
	return nil
}

// unready is why a running container is not ready.
func (in *input) unready(c *v1.Container, s *v1.ContainerStatus) *Cause {
	kind, probe := Readiness, c.ReadinessProbe
	if s.Started != nil && !*s.Started && c.StartupProbe != nil {
		kind, probe = Startup, c.StartupProbe
	}
	if probe == nil || s.Ready && kind == Readiness {
		return nil
	}
	if found := in.step(Step{kind, c.Name}); found != nil && found.State == failed {
		return in.ofStep(found)
	}
	return &Cause{
		Step: &Step{kind, c.Name}, Where: in.where(c.Name), What: fmt.Sprintf("its %s has not passed yet", kind),
		Since: s.State.Running.StartedAt.Time, Fix: in.field(c.Name) + probeField(kind),
	}
}

func (in *input) conditionSince(kind v1.PodConditionType) time.Time {
	for _, c := range in.status.Conditions {
		if c.Type == kind {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// up describes a pod that nothing blocks, and its last restart.
func (in *input) up() Cause {
	if !isReady(in.status) {
		return Cause{Where: "pod", What: "is being started", Since: in.since, Next: in.nextStart()}
	}
	cause := Cause{Up: true, Where: "pod", What: "is ready", Since: in.conditionSince(v1.PodReady)}
	for c := range pod.Containers(in.pod) {
		s := pod.FindStatus(in.status, c.Name)
		if s == nil || s.RestartCount == 0 || s.LastTerminationState.Terminated == nil {
			continue
		}
		last := s.LastTerminationState.Terminated
		what, fix, text := in.exit(c.Name, last)
		cause.What += fmt.Sprintf("; container %s has restarted %s, the last time because it %s", c.Name, times(int(s.RestartCount)), strings.TrimPrefix(what, "was stopped: "))
		cause.Fix, cause.Text = fix, text
		break
	}
	return cause
}

// step returns the report of a step, nil if it is not known.
func (in *input) step(of Step) *StepReport {
	for i := range in.steps {
		if in.steps[i].Step == of {
			return &in.steps[i]
		}
	}
	return nil
}
