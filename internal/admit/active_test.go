package admit

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
	"swiftlet/internal/status"
	"swiftlet/internal/worker"
)

// stuck are steps that run until their context is done.
type stuck struct{}

func (stuck) Sync(ctx context.Context, _ pod.Work) (pod.Outcome, error) {
	<-ctx.Done()
	return pod.Outcome{}, ctx.Err()
}
func (stuck) Stop(ctx context.Context, _ pod.Work) error   { <-ctx.Done(); return ctx.Err() }
func (stuck) Finish(ctx context.Context, _ pod.Work) error { <-ctx.Done(); return ctx.Err() }
func (stuck) Remove(ctx context.Context, _ pod.Work) error { <-ctx.Done(); return ctx.Err() }

// A pod with a terminal phase does not count as active, even before its worker has finished.
func TestActiveLeavesOutTerminalPods(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	workers, err := worker.New(worker.NewTable(), worker.Deps{NewSteps: func() worker.Steps { return stuck{} }, Clock: clock.RealClock{}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	statuses, err := status.New(status.Config{}, status.Deps{
		Mirror: func(*v1.Pod) *v1.Pod { return nil }, Clock: clock.RealClock{}, Jitter: func() float64 { return 0 }, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, phase v1.PodPhase) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Status: v1.PodStatus{Phase: phase}}
		workers.Handle(pod.Change{Op: pod.Add, Pod: p}, nil)
		return p
	}
	add("new", v1.PodPending)
	add("running", v1.PodRunning)
	add("succeeded before the restart", v1.PodSucceeded)
	add("failed before the restart", v1.PodFailed)
	statuses.Set(add("ends now", v1.PodRunning), v1.PodStatus{Phase: v1.PodSucceeded})

	admission := &Admission{deps: Deps{Workers: workers, Status: statuses.Get}}
	var active []string
	for _, p := range admission.active() {
		active = append(active, p.Name)
	}
	slices.Sort(active)
	if want := []string{"new", "running"}; !slices.Equal(active, want) {
		t.Errorf("active: %q, want %q", active, want)
	}
}
