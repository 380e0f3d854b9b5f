package page

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"swiftlet/internal/pod"
)

// maxEvents is how many events of a pod are shown, the newest ones.
const maxEvents = 100

// yamlOf renders the pod with its status, as `kubectl get -o yaml` does.
func yamlOf(p *v1.Pod) (string, error) {
	shown := *p
	shown.APIVersion, shown.Kind, shown.ManagedFields = "v1", "Pod", nil
	text, err := yaml.Marshal(&shown)
	if err != nil {
		return "", fmt.Errorf("render pod: %w", err)
	}
	return string(text), nil
}

// eventsOf selects the events of a pod, newest first, and counts equal ones.
func eventsOf(p *v1.Pod, all []v1.Event) []Event {
	type key struct{ kind, reason, message, object string }
	found := map[key]*Event{}
	for i := range all {
		e := &all[i]
		if of := &e.InvolvedObject; of.Kind != "Pod" || of.Namespace != p.Namespace || of.Name != p.Name || of.UID != p.UID {
			continue
		}
		k := key{e.Type, e.Reason, e.Message, e.InvolvedObject.FieldPath}
		if found[k] == nil {
			found[k] = &Event{Type: e.Type, Reason: e.Reason, Message: e.Message, Object: e.InvolvedObject.FieldPath}
		}
		found[k].Count += max(e.Count, 1)
		if at := e.LastTimestamp.Time; at.After(found[k].Time) {
			found[k].Time = at
		}
	}
	events := make([]Event, 0, len(found))
	for _, e := range found {
		events = append(events, *e)
	}
	slices.SortFunc(events, func(a, b Event) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return events[:min(len(events), maxEvents)]
}

func containerViews(p *v1.Pod) []ContainerView {
	views := []ContainerView{}
	for c, kind := range pod.Containers(p) {
		view := ContainerView{
			Name: c.Name, Kind: kindText(c, kind), State: "waiting", Image: c.Image,
			Limits: amountsOf(c.Resources.Limits), Requests: amountsOf(c.Resources.Requests),
		}
		if s := pod.FindStatus(&p.Status, c.Name); s != nil {
			view.Restarts, view.Ready = s.RestartCount, s.Ready
			view.setState(&s.State)
		}
		views = append(views, view)
	}
	return views
}

func (c *ContainerView) setState(s *v1.ContainerState) {
	switch {
	case s.Running != nil:
		c.State, c.Started = "running", s.Running.StartedAt.Time
	case s.Terminated != nil:
		c.State, c.Reason, c.ExitCode, c.Started = "terminated", s.Terminated.Reason, &s.Terminated.ExitCode, s.Terminated.StartedAt.Time
	case s.Waiting != nil:
		c.Reason = s.Waiting.Reason
	}
}

func kindText(c *v1.Container, kind pod.ContainerKind) string {
	switch {
	case kind == pod.Ephemeral:
		return "ephemeral"
	case kind == pod.Init && pod.IsSidecar(c):
		return "sidecar"
	case kind == pod.Init:
		return "init"
	}
	return "app"
}

func amountsOf(list v1.ResourceList) (a Amounts) {
	if q, ok := list[v1.ResourceCPU]; ok {
		cores := float64(q.MilliValue()) / 1000
		a.CPU = &cores
	}
	for name, into := range map[v1.ResourceName]**int64{
		v1.ResourceMemory: &a.Memory, v1.ResourcePods: &a.Pods, v1.ResourceEphemeralStorage: &a.Ephemeral,
	} {
		if q, ok := list[name]; ok {
			n := q.Value()
			*into = &n
		}
	}
	return a
}
