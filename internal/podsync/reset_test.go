package podsync

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// killer is a runtime that only stops and removes.
type killer struct {
	Runtime
	mu    sync.Mutex
	calls []string
	fail  string
}

func (k *killer) record(call string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls = append(k.calls, call)
	if call == k.fail {
		return errors.New("refused")
	}
	return nil
}

func (k *killer) Stop(_ context.Context, _ *v1.Pod, what runtime.Targets, how runtime.StopOptions) error {
	if how.Grace == nil || *how.Grace != 0 || how.PodEnds {
		return errors.New("with grace")
	}
	return inParallel(what.Containers, func(c pod.Container) error { return k.record("stop " + c.ID) })
}

func (k *killer) Remove(_ context.Context, _ pod.Ref, what runtime.Targets, logs runtime.Logs) error {
	if logs != runtime.KeepLogs {
		return errors.New("with logs")
	}
	return inParallel(what.Containers, func(c pod.Container) error { return k.record("remove " + c.ID) })
}

func TestReset(t *testing.T) {
	containers := []pod.Container{{ID: "b", State: pod.Running}, {ID: "i", State: pod.Exited}, {ID: "m", State: pod.Created}, {ID: "a", State: pod.Exited}}
	cases := []struct {
		name, fail string
		want       []string
	}{
		{"running containers are killed, then all are removed in order", "", []string{"stop b", "remove b", "remove i", "remove m", "remove a"}},
		{"a failed kill removes nothing", "stop b", []string{"stop b"}},
		{"a failed removal ends the reset", "remove i", []string{"stop b", "remove b", "remove i"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := &killer{fail: c.fail}
			s := &Steps{deps: Deps{Runtime: k}}
			err := s.reset(context.Background(), &v1.Pod{}, containers)
			if (err != nil) != (c.fail != "") || !slices.Equal(k.calls, c.want) {
				t.Errorf("did %q (%v), want %q", k.calls, err, c.want)
			}
		})
	}
}

func TestKillMessage(t *testing.T) {
	c := pod.Container{Name: "a"}
	for want, k := range map[string]plan.Kill{
		"Container a failed liveness probe":                                   {Reason: plan.Liveness, Kind: pod.Main},
		"Container a failed liveness probe, will be restarted":                {Reason: plan.Liveness, Kind: pod.Main, Restart: true},
		"Container a definition changed, will be restarted":                   {Reason: plan.Changed, Kind: pod.Main, Restart: true},
		"Init container a failed startup probe":                               {Reason: plan.Startup, Kind: pod.Init, Restart: true},
		`Container is in "unknown" state, try killing it before restart`:      {Reason: plan.UnknownState, Kind: pod.Main},
		`Init container is in "unknown" state, try killing it before restart`: {Reason: plan.UnknownState, Kind: pod.Init},
		"": {Reason: plan.NoSandbox, Kind: pod.Main},
	} {
		k.Container = c
		if got := killMessage(k); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
