package podsync

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// listed is an observer of which only the list is asked.
type listed struct {
	Observer
	pods []pod.Observed
}

func (l listed) List() []pod.Observed { return l.pods }

func TestKeepDead(t *testing.T) {
	dead := func(name string) pod.Container { return pod.Container{Name: name, State: pod.Exited} }
	pods := []pod.Observed{ // of 3 containers 6 dead instances
		{Containers: []pod.Container{dead("a"), dead("a"), dead("b"), {Name: "b", State: pod.Running}}},
		{Containers: []pod.Container{dead("a"), dead("a"), dead("a")}},
	}
	for name, c := range map[string]struct{ each, node, want int }{
		"no limit on the node":           {each: 2, node: -1, want: 2},
		"no limit at all":                {each: -1, node: -1, want: -1},
		"few enough":                     {each: 5, node: 6, want: 5},
		"a share":                        {each: 5, node: 5, want: 1},
		"a share, and no limit for each": {each: -1, node: 5, want: 1},
		"the last is never taken":        {each: 1, node: 0, want: 1},
	} {
		s := &Steps{cfg: Config{KeepDead: c.each, KeepOnNode: c.node}, deps: Deps{Observer: listed{pods: pods}}}
		if got := s.keepDead(); got != c.want {
			t.Errorf("%s: %d of each container stay, want %d", name, got, c.want)
		}
	}
	s := &Steps{cfg: Config{KeepDead: 5, KeepOnNode: 8}, deps: Deps{Observer: listed{pods: append(pods, pods[1])}}}
	if got := s.keepDead(); got != 2 {
		t.Errorf("9 instances of 4 containers: %d of each stay, want 2", got)
	}
}

// refusing is an API server that cannot be reached.
type refusing struct{ Mirrors }

func (refusing) Delete(ctx context.Context, _ pod.Ref, _ types.UID) (bool, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return false, errors.New("it may take for ever")
	}
	return false, errors.New("connection refused")
}

// bare is a pod of which nothing is left.
type bare struct{ Observer }

func (bare) Refresh(context.Context, types.UID) (pod.Observed, error) { return pod.Observed{}, nil }

type (
	bareRuntime struct{ Runtime }
	bareVolumes struct{ Volumes }
	bareStatus  struct{ Status }
)

func (bareRuntime) RemoveLogs(pod.Ref) error     { return nil }
func (bareVolumes) RemovePodDir(types.UID) error { return nil }
func (bareStatus) Forget(types.UID)              {}

// A static pod is gone though the API server cannot be told: the next of its name waits for it.
func TestRemoveWithoutAPIServer(t *testing.T) {
	var said strings.Builder
	s := &Steps{crashes: newCrashBackoff(Backoff{}), retries: newRetries(), deps: Deps{
		Observer: bare{}, Runtime: bareRuntime{}, Volumes: bareVolumes{}, Status: bareStatus{}, Mirrors: refusing{},
		Log: slog.New(slog.NewTextHandler(&said, nil)),
	}}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "static", UID: "1"}}
	if err := s.Remove(t.Context(), pod.Work{Pod: p, Mirror: p}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(said.String(), "connection refused") {
		t.Errorf("nobody hears of it: %q", said.String())
	}
}
