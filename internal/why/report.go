package why

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// Report is what is known of a pod's start and end.
type Report struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// At is when the report was made.
	At    time.Time   `json:"at"`
	Stage string      `json:"stage"`
	Phase v1.PodPhase `json:"phase,omitempty"`
	Ready bool        `json:"ready"`
	// Sentence is Cause as text, with times in UTC.
	Sentence string       `json:"sentence"`
	Cause    Cause        `json:"cause"`
	Steps    []StepReport `json:"steps"`
	// Processes are those of the pod, if it waits for their end, and no more than 100 of them.
	Processes []Process `json:"processes,omitempty"`
	// Omitted is the number of steps that are not listed.
	Omitted int `json:"omitted,omitempty"`
}

// Cause is what the pod waits for, or why it is as it is.
type Cause struct {
	// Up: nothing blocks the pod.
	Up bool `json:"up"`
	// Step is the blocking one, if it is a step.
	Step  *Step `json:"step,omitempty"`
	Class Class `json:"class,omitempty"`
	// Where is the part of the pod: "container app", "volume data", "sandbox", "pod".
	Where string `json:"where"`
	// What has happened or is awaited, without a full stop.
	What string `json:"what"`
	// Text is the error as its source has worded it.
	Text string `json:"text,omitempty"`
	// Fix is the object to change, or to look at.
	Fix      string    `json:"fix,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Attempts int       `json:"attempts,omitempty"`
	Next     time.Time `json:"next,omitzero"`
}

// StepReport is one step.
type StepReport struct {
	Step
	// State is "running", "queued", "failed" or "done".
	State string `json:"state"`
	// Since is when the first attempt since the last success began, Began and Ended when the last one did.
	Since    time.Time `json:"since"`
	Began    time.Time `json:"began"`
	Ended    time.Time `json:"ended,omitzero"`
	Next     time.Time `json:"next,omitzero"`
	Attempts int       `json:"attempts"`
	Bytes    int64     `json:"bytes,omitempty"`
	// Class, Object and Error are those of the last failure, also if a later attempt has succeeded.
	Class  Class  `json:"class,omitempty"`
	Object string `json:"object,omitempty"`
	Error  string `json:"error,omitempty"`

	clock time.Time // what the wall clock showed when the attempt with Error began
}

// States of a step.
const (
	running = "running"
	queued  = "queued"
	failed  = "failed"
	done    = "done"
)

// Find returns the UID of the pod with this name; found is false if there is none. The name of a static pod may
// be that of its manifest, without the node's. Of several pods, it is one that does not end, and the newest.
func (t *Tracker) Find(namespace, name string) (uid types.UID, found bool) {
	if t == nil {
		return "", false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var best *record
	for id, r := range t.pods {
		manifest := pod.IsStatic(r.pod) && r.pod.Name == name+"-"+r.pod.Spec.NodeName
		if r.pod.Namespace != namespace || r.pod.Name != name && !manifest {
			continue
		}
		if best == nil || r.rank(name, best) > 0 {
			uid, best = id, r
		}
	}
	return uid, best != nil
}

// rank compares two pods that a name may mean: the better one is the greater.
func (r *record) rank(name string, other *record) int {
	exact := func(r *record) int {
		if r.pod.Name == name {
			return 1
		}
		return 0
	}
	return cmp.Or(exact(r)-exact(other), cmp.Compare(other.stage, r.stage), cmp.Compare(r.since, other.since))
}

// Pods lists the pods that are tracked, in no particular order.
func (t *Tracker) Pods() []types.UID {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]types.UID, 0, len(t.pods))
	for uid := range t.pods {
		all = append(all, uid)
	}
	return all
}

// Report describes a pod, given its status as last derived; found is false for a pod that is not tracked.
func (t *Tracker) Report(uid types.UID, status *v1.PodStatus, now time.Time) (report Report, found bool) {
	if t == nil {
		return report, false
	}
	t.mu.Lock()
	r := t.pods[uid]
	if r == nil {
		t.mu.Unlock()
		return report, false
	}
	line := timeline{now, t.offset(now)}
	in := input{pod: r.pod, failure: r.failure, stage: r.stage, since: line.at(r.since), next: line.at(r.next), now: now.UTC(), status: status}
	omitted := r.omitted
	for i := range r.steps {
		in.steps = append(in.steps, r.steps[i].report(line))
	}
	t.mu.Unlock()
	if in.status == nil {
		in.status = &in.pod.Status
	}
	slices.SortStableFunc(in.steps, func(a, b StepReport) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	cause := in.explain()
	report = Report{
		Namespace: in.pod.Namespace, Name: in.pod.Name, UID: in.pod.UID, At: in.now, Stage: in.stage.String(), Phase: in.status.Phase,
		Ready: isReady(in.status), Cause: cause, Steps: in.steps, Omitted: omitted,
	}
	report.Sentence = cause.Sentence(report.At)
	return report, true
}

// First is the first line for people.
func (r Report) First() string { return r.Sentence }

// Unscheduled describes a pod that is on no node yet.
func Unscheduled(p *v1.Pod, now time.Time) Report {
	cause := Cause{Where: "pod", What: "has not been scheduled to a node yet", Since: p.CreationTimestamp.Time, Fix: "the scheduler, which has not looked at it"}
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status != v1.ConditionTrue {
			cause.What, cause.Text, cause.Since = "cannot be scheduled to any node", oneLine(c.Message), c.LastTransitionTime.Time
			cause.Fix = "what the message names, in spec or on the nodes"
		}
	}
	for _, gate := range p.Spec.SchedulingGates {
		cause.What, cause.Fix, cause.Text = "is not scheduled before its scheduling gate "+gate.Name+" is removed", "spec.schedulingGates, or the controller that removes it", ""
	}
	report := Report{Namespace: p.Namespace, Name: p.Name, UID: p.UID, At: now.UTC(), Stage: Starting.String(), Phase: p.Status.Phase, Cause: cause, Steps: []StepReport{}}
	report.Sentence = cause.Sentence(report.At)
	return report
}

func (e *entry) report(line timeline) StepReport {
	s := StepReport{
		Step: e.Step, Since: line.at(e.since), Began: line.at(e.began), Ended: line.at(e.ended), Next: line.at(e.next),
		Attempts: int(e.tries), Bytes: e.bytes, State: done,
	}
	switch {
	case e.ended == 0 && e.queued:
		s.State = queued
	case e.ended == 0:
		s.State = running
	case e.failed:
		s.State = failed
	}
	if e.fault != nil {
		s.Class, s.Object, s.Error, s.clock = e.fault.class, e.fault.object, e.fault.text, time.Unix(0, e.fault.clock)
	}
	return s
}

func isReady(s *v1.PodStatus) bool {
	for _, c := range s.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// input is what a Cause is derived from.
type input struct {
	pod         *v1.Pod
	failure     *pod.Failure
	status      *v1.PodStatus
	stage       Stage
	since, next time.Time
	now         time.Time
	steps       []StepReport
}
