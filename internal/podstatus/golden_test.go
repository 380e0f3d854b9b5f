package podstatus

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"swiftlet/internal/pod"
)

// recorded reads pods with the statuses of the reference kubelet.
func recorded(t *testing.T) []v1.Pod {
	t.Helper()
	data, err := os.ReadFile("testdata/pods.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list v1.PodList
	if err := yaml.UnmarshalStrict(data, &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// input rebuilds the input of a recorded status.
func input(p *v1.Pod) Input {
	s := &p.Status
	derived := *p // its phase is derived, not that of the API server
	derived.Status.Phase, derived.Status.Reason, derived.Status.Message = "", "", ""
	in := Input{Pod: &derived, Previous: v1.PodStatus{StartTime: s.StartTime, Conditions: s.Conditions}, HostIPs: []string{s.HostIP},
		Runtime: "containerd", Now: time.Now(), Waiting: map[string]pod.Waiting{}}
	o := &pod.Observed{Ref: pod.RefOf(p)}
	box := pod.Sandbox{HostNetwork: p.Spec.HostNetwork, Ready: s.Conditions[0].Status == v1.ConditionTrue}
	for _, ip := range s.PodIPs {
		box.IPs = append(box.IPs, ip.IP)
	}
	o.Sandboxes = []pod.Sandbox{box}
	health := map[string]pod.Health{}
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for _, c := range list {
			if c.State.Waiting != nil {
				in.Waiting[c.Name] = pod.Waiting{Reason: c.State.Waiting.Reason, Message: c.State.Waiting.Message}
			}
			o.Containers = append(o.Containers, instances(c)...)
			_, id, _ := strings.Cut(c.ContainerID, "://")
			h := pod.Health{Startup: pod.Failed, Readiness: pod.Failed}
			if c.Started != nil && *c.Started {
				h.Startup = pod.Passed
			}
			if c.Ready {
				h.Readiness = pod.Passed
			}
			health[id] = h
		}
	}
	in.Observed, in.Health = o, func(id string) pod.Health { return health[id] }
	if s.Reason != "" {
		in.Failure = &pod.Failure{Reason: s.Reason, Message: s.Message}
	}
	return in
}

// instances returns the instances that a container status shows.
func instances(c v1.ContainerStatus) []pod.Container {
	var all []pod.Container
	add := func(state v1.ContainerState, count int32) {
		one := pod.Container{Name: c.Name, RestartCount: int(count), Image: c.Image, ImageID: c.ImageID, User: c.User}
		_, one.ID, _ = strings.Cut(c.ContainerID, "://")
		switch {
		case state.Running != nil:
			one.State, one.StartedAt = pod.Running, state.Running.StartedAt.Time
		case state.Terminated != nil:
			t := state.Terminated
			_, one.ID, _ = strings.Cut(t.ContainerID, "://")
			one.State, one.ExitCode, one.Reason, one.Message = pod.Exited, t.ExitCode, t.Reason, t.Message
			one.StartedAt, one.FinishedAt = t.StartedAt.Time, t.FinishedAt.Time
		default:
			return
		}
		all = append(all, one)
	}
	add(c.State, c.RestartCount)
	if c.State.Waiting != nil { // a crash loop: the last run is the latest instance
		add(c.LastTerminationState, c.RestartCount)
	} else {
		add(c.LastTerminationState, c.RestartCount-1)
	}
	return all
}

// noLimit is how the reference kubelet shows no limit on cgroup v1. Swiftlet shows none.
const noLimit = "9007199254740988Ki"

func TestRecordedStatuses(t *testing.T) {
	for _, p := range recorded(t) {
		t.Run(p.Name, func(t *testing.T) {
			want := p.Status.DeepCopy()
			if m, ok := want.Resources.Limits[v1.ResourceMemory]; ok && m.String() == noLimit {
				delete(want.Resources.Limits, v1.ResourceMemory)
				if len(want.Resources.Limits) == 0 {
					want.Resources.Limits = nil
				}
				if slices.ContainsFunc(p.Spec.Containers, func(c v1.Container) bool { return !c.Resources.Limits.Memory().IsZero() }) {
					want.Resources.Limits[v1.ResourceMemory] = p.Spec.Containers[0].Resources.Limits[v1.ResourceMemory]
				}
			}
			in := input(&p)
			p.Status = v1.PodStatus{}
			got := Compute(in)
			if diff := cmp.Diff(*want, got); diff != "" {
				t.Errorf("recorded (-) and derived (+) status differ:\n%s", diff)
			}
		})
	}
}
