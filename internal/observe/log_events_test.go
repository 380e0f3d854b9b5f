package observe

import (
	"fmt"
	"testing"

	"swiftlet/internal/pod"
)

func TestLifecycleEvents(t *testing.T) {
	observed := func(sandboxReady bool, states ...pod.ContainerState) pod.Observed {
		o := pod.Observed{Ref: pod.Ref{UID: "u"}, Sandboxes: []pod.Sandbox{{ID: "s", Ready: sandboxReady}}}
		for i, state := range states {
			o.Containers = append(o.Containers, pod.Container{ID: fmt.Sprint("c", i), State: state})
		}
		return o
	}
	none := pod.Observed{Ref: pod.Ref{UID: "u"}}
	cases := map[string]struct {
		before, after pod.Observed
		want          string
	}{
		"sandbox started":             {none, observed(true), "[{u ContainerStarted s}]"},
		"container created":           {observed(true), observed(true, pod.Created), "[]"},
		"container started":           {observed(true, pod.Created), observed(true, pod.Running), "[{u ContainerStarted c0}]"},
		"container of unknown state":  {observed(true, pod.Running), observed(true, pod.Unknown), "[]"},
		"one exited, another started": {observed(true, pod.Running), observed(true, pod.Exited, pod.Running), "[{u ContainerDied c0} {u ContainerStarted c1}]"},
		"unchanged":                   {observed(true, pod.Running), observed(true, pod.Running), "[]"},
		"first seen after its exit":   {none, observed(false, pod.Exited), "[{u ContainerDied c0} {u ContainerDied s}]"},
		"running one disappeared":     {observed(true, pod.Running), none, "[{u ContainerDied c0} {u ContainerDied s}]"},
		"exited one removed":          {observed(false, pod.Exited), none, "[]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(lifecycleEvents(c.before, c.after)); got != c.want {
				t.Errorf("events %s, want %s", got, c.want)
			}
		})
	}
}
