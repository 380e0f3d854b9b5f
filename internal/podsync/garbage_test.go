package podsync

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// listed is an observer that only lists.
type listed struct {
	Observer
	pods []pod.Observed
}

func (l listed) List() []pod.Observed { return l.pods }

func TestMaxDeadPerContainer(t *testing.T) {
	dead := func(name string) pod.Container { return pod.Container{Name: name, State: pod.Exited} }
	pods := []pod.Observed{ // of 3 containers 6 dead instances
		{Containers: []pod.Container{dead("a"), dead("a"), dead("b"), {Name: "b", State: pod.Running}}},
		{Containers: []pod.Container{dead("a"), dead("a"), dead("a")}},
	}
	for name, c := range map[string]struct{ each, node, want int }{
		"no limit on the node":                  {each: 2, node: -1, want: 2},
		"no limits":                             {each: -1, node: -1, want: -1},
		"below the node limit":                  {each: 5, node: 6, want: 5},
		"node limit shared by three containers": {each: 5, node: 5, want: 1},
		"node limit without a limit for each":   {each: -1, node: 5, want: 1},
		"newest instance is kept":               {each: 1, node: 0, want: 1},
	} {
		s := &Steps{cfg: Config{MaxDeadPerContainer: c.each, MaxDead: c.node}, deps: Deps{Observer: listed{pods: pods}}}
		if got := s.maxDeadPerContainer(); got != c.want {
			t.Errorf("%s: keeps %d of each container, want %d", name, got, c.want)
		}
	}
	s := &Steps{cfg: Config{MaxDeadPerContainer: 5, MaxDead: 8}, deps: Deps{Observer: listed{pods: append(pods, pods[1])}}}
	if got := s.maxDeadPerContainer(); got != 2 {
		t.Errorf("9 instances of 4 containers: keeps %d of each, want 2", got)
	}
}

// remover is a runtime that only removes containers.
type remover struct {
	Runtime
	removed []string
}

func (r *remover) Remove(_ context.Context, _ pod.Ref, what runtime.Targets, _ runtime.Logs) error {
	for _, c := range what.Containers {
		r.removed = append(r.removed, c.ID)
	}
	return nil
}

func TestRemoveSurplus(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	made := func(id, name string, ago time.Duration) pod.Container {
		return pod.Container{ID: id, Name: name, State: pod.Exited, CreatedAt: now.Add(-ago)}
	}
	pods := []pod.Observed{
		{Ref: pod.Ref{UID: "done"}, Containers: []pod.Container{made("d2", "a", 20*time.Minute), made("d1", "a", 40*time.Minute)}},
		{Ref: pod.Ref{UID: "lives"}, Containers: []pod.Container{made("l", "a", 50*time.Minute)}},
		{Ref: pod.Ref{UID: "gone"}, Containers: []pod.Container{made("g", "b", 30*time.Minute)}},
	}
	for name, c := range map[string]struct {
		keep  int
		young time.Duration
		want  string
	}{
		"no limit on dead containers":         {keep: -1},
		"below the limit":                     {keep: 4},
		"one above the limit":                 {keep: 3, want: "d1"},
		"two above the limit":                 {keep: 2, want: "d1 g"},
		"containers of running pods are kept": {keep: 0, want: "d1 g d2"},
		"young containers are kept":           {keep: 0, young: 25 * time.Minute, want: "d1 g"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &remover{}
			s := &Steps{cfg: Config{MaxDead: c.keep, MinDeadAge: c.young},
				deps: Deps{Runtime: r, Observer: listed{pods: pods}, Clock: clocktesting.NewFakeClock(now)}}
			if err := s.RemoveSurplus(t.Context(), func(uid types.UID) bool { return uid != "lives" }); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.removed, " "); got != c.want {
				t.Errorf("removed %q, want %q", got, c.want)
			}
		})
	}
}

func TestCollectGarbageReturnsForYoungContainers(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := pod.Observed{Containers: []pod.Container{
		{ID: "2", Name: "a", State: pod.Exited, CreatedAt: now}, {ID: "1", Name: "a", State: pod.Exited, CreatedAt: now.Add(-time.Minute)},
	}}
	r, clock := &remover{}, clocktesting.NewFakeClock(now)
	s := &Steps{cfg: Config{MaxDeadPerContainer: 1, MaxDead: -1, MinDeadAge: 10 * time.Minute}, deps: Deps{Runtime: r, Clock: clock}}
	retryAfter := s.collectGarbage(t.Context(), &o)
	if retryAfter < 9*time.Minute || retryAfter > 9*time.Minute+time.Second || len(r.removed) > 0 {
		t.Fatalf("retryAfter in %s, removed %v", retryAfter, r.removed)
	}
	clock.Step(retryAfter)
	if retryAfter := s.collectGarbage(t.Context(), &o); retryAfter != 0 || len(r.removed) != 1 {
		t.Errorf("then retryAfter in %s, removed %v", retryAfter, r.removed)
	}
}
