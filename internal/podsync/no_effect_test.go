package podsync

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/image"
	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
	"swiftlet/internal/volume"
	"swiftlet/test/stepclock"
)

// idleRuntime reports success of every call, and always has the same pod.
type idleRuntime struct {
	Runtime
	Observer
	observed pod.Observed
	calls    map[string]int
	end      context.CancelFunc // after many calls
	creating atomic.Int64
	most     atomic.Int64 // of creating
}

func (r *idleRuntime) count(call string) error {
	if r.calls[call]++; r.calls[call] >= 100 {
		r.end()
	}
	return nil
}

func (r *idleRuntime) Get(types.UID) (pod.Observed, bool) { return r.observed, true }
func (r *idleRuntime) Refresh(context.Context, types.UID) (pod.Observed, error) {
	return r.observed, nil
}
func (r *idleRuntime) PrepareSandbox(context.Context, runtime.SandboxRequest) (*runtime.Sandbox, error) {
	return &runtime.Sandbox{}, nil
}
func (r *idleRuntime) CreateSandbox(context.Context, *runtime.Sandbox) (string, []string, error) {
	return "sandbox", nil, r.count("create sandbox")
}
func (r *idleRuntime) PrepareContainer(context.Context, *v1.Pod, *v1.Container, func() (runtime.Input, error)) (*runtime.Container, error) {
	return &runtime.Container{}, nil
}
func (r *idleRuntime) CreateContainer(context.Context, *runtime.Container) (string, error) {
	r.most.Store(max(r.most.Load(), r.creating.Add(1)))
	time.Sleep(time.Second)
	r.creating.Add(-1)
	return "new", nil
}
func (r *idleRuntime) StartContainer(context.Context, *v1.Pod, *v1.Container, string, int, []string) error {
	return nil
}
func (r *idleRuntime) Stop(_ context.Context, _ *v1.Pod, what runtime.Targets, _ runtime.StopOptions) error {
	return inParallel(what.Containers, func(pod.Container) error { return r.count("stop") })
}
func (r *idleRuntime) Remove(_ context.Context, _ pod.Ref, what runtime.Targets, _ runtime.Logs) error {
	return inParallel(what.Containers, func(pod.Container) error { return r.count("remove") })
}

type (
	anyStatus  struct{ Status }
	anyProbes  struct{ Probes }
	anyVolumes struct{ Volumes }
	anyImages  struct{}
	anyCgroups struct{ Cgroups }
)

func (anyStatus) Set(_ *v1.Pod, s v1.PodStatus) v1.PodStatus                         { return s }
func (anyStatus) Get(types.UID) (v1.PodStatus, bool)                                 { return v1.PodStatus{}, false }
func (anyStatus) Published(*v1.Pod) (v1.PodStatus, bool)                             { return v1.PodStatus{}, false }
func (anyProbes) Watch(*v1.Pod, *pod.Observed, string, *v1.PodStatus, bool)          {}
func (anyProbes) Health(string) pod.Health                                           { return pod.Health{} }
func (anyVolumes) Health(types.UID, []v1.PodVolumeHealth) []v1.PodVolumeHealth       { return nil }
func (anyVolumes) Mount(context.Context, *v1.Pod) (map[string]volume.Mounted, error) { return nil, nil }
func (anyCgroups) EnsurePod(*v1.Pod) error                                           { return nil }
func (anyCgroups) PodParent(*v1.Pod) string                                          { return "" }
func (anyImages) Ensure(context.Context, *v1.Pod, *v1.Container, image.Sandbox) (image.Image, error) {
	return image.Image{}, nil
}

// stepsOn returns the steps of a pod that needs nothing but the runtime.
func stepsOn(r *idleRuntime) *PodSteps {
	s := stepped(&stepclock.Clock{}, Config{MaxDead: -1})
	s.deps.Runtime, s.deps.Observer, s.deps.Status, s.deps.Probes, s.deps.Volumes = r, r, anyStatus{}, anyProbes{}, anyVolumes{}
	s.deps.Images, s.deps.Cgroups, s.deps.Resources = anyImages{}, anyCgroups{}, noResources{}
	s.deps.Node = Node{
		Handler: func(*v1.Pod) (runtime.Handler, error) { return runtime.Handler{}, nil },
		Network: func() error { return nil }, HostIPs: func() []string { return nil },
	}
	return s
}

// A call of the runtime that succeeds without an effect is repeated after a back-off, not at once.
func TestCallsWithoutEffectEndTheStep(t *testing.T) {
	sandbox := pod.Sandbox{ID: "sandbox", Ready: true, IPs: []string{"10.0.0.1"}}
	noIP := pod.Sandbox{ID: "sandbox", Ready: true}
	exit := []v1.ContainerRestartRule{{
		Action:    v1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{1}},
	}}
	for call, c := range map[string]struct {
		sandbox   pod.Sandbox
		container pod.Container
	}{
		"stop":           {sandbox, pod.Container{ID: "c", SandboxID: "sandbox", Name: "c", State: pod.Unknown}},
		"remove":         {sandbox, pod.Container{ID: "c", SandboxID: "sandbox", Name: "c", State: pod.Exited, ExitCode: 1}},
		"create sandbox": {noIP, pod.Container{}},
	} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := &idleRuntime{calls: map[string]int{}, end: cancel, observed: pod.Observed{Sandboxes: []pod.Sandbox{c.sandbox}}}
				if c.container.ID != "" {
					r.observed.Containers = []pod.Container{c.container}
				}
				s := stepsOn(r)
				p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", RestartPolicyRules: exit}}}}
				_, _, err := s.converge(ctx, pod.Work{Pod: p}, r.observed, v1.PodStatus{})
				if got := fmt.Sprint(r.calls); err == nil || got != fmt.Sprintf("map[%s:1]", call) {
					t.Errorf("calls %v, %v, want one and an error", got, err)
				}
			})
		})
	}
}

// The configurations of a pod's containers are not all in memory at the same time.
func TestFewContainersAreCreatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sandbox := pod.Sandbox{ID: "sandbox", Ready: true, IPs: []string{"10.0.0.1"}}
		r := &idleRuntime{observed: pod.Observed{Sandboxes: []pod.Sandbox{sandbox}}}
		s, p := stepsOn(r), &v1.Pod{}
		var actions plan.Actions
		for n := range 100 {
			actions.Start = append(actions.Start, plan.Start{Container: &v1.Container{Name: fmt.Sprint(n)}, Kind: pod.Main})
		}
		if failed, err := s.start(t.Context(), p, &r.observed, actions); err != nil || len(failed) > 0 {
			t.Errorf("%v, %v", failed, err)
		}
		if most := r.most.Load(); most != parallelCreations {
			t.Errorf("%d containers were created at the same time, want %d", most, parallelCreations)
		}
	})
}
