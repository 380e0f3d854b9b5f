package podsync

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// refusing is an API server that is unavailable.
type refusing struct{ Mirrors }

func (refusing) Delete(ctx context.Context, _ pod.Ref, _ types.UID) (bool, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return false, errors.New("no deadline")
	}
	return false, errors.New("connection refused")
}

// bare is a pod without containers and sandboxes.
type bare struct{ Observer }

func (bare) Refresh(context.Context, types.UID) (pod.Observed, error) { return pod.Observed{}, nil }

type (
	bareRuntime struct{ Runtime }
	bareVolumes struct{ Volumes }
	bareStatus  struct{ Status }
)

func (bareRuntime) RemoveLogs(pod.Ref) error { return nil }
func (bareRuntime) Remove(context.Context, pod.Ref, runtime.Targets, runtime.Logs) error {
	return nil
}
func (bareVolumes) RemovePodDir(types.UID) error { return nil }
func (bareStatus) Forget(types.UID)              {}

// left is a pod with one container, which Remove removes.
type left struct {
	Observer
	looks int
}

func (l *left) Refresh(context.Context, types.UID) (pod.Observed, error) {
	l.looks++
	if l.looks > 1 {
		return pod.Observed{}, nil
	}
	return pod.Observed{Containers: []pod.Container{{ID: "c"}}}, nil
}

type removals struct {
	Runtime
	calls []string
}

func (r *removals) RemoveLogs(pod.Ref) error { r.calls = append(r.calls, "remove logs"); return nil }
func (r *removals) Remove(_ context.Context, _ pod.Ref, what runtime.Targets, logs runtime.Logs) error {
	for range what.Containers {
		if logs == runtime.DeleteLogs {
			r.calls = append(r.calls, "remove container with its logs")
		} else {
			r.calls = append(r.calls, "remove container")
		}
	}
	return nil
}

// The restart counts of a pod that starts again with the same UID follow from its logs.
func TestRemoveKeepsLogsOfReturningPod(t *testing.T) {
	for returns, want := range map[bool][]string{
		false: {"remove container with its logs", "remove logs"},
		true:  {"remove container"},
	} {
		r := &removals{}
		s := &Steps{deps: Deps{
			Clock:    clocktesting.NewFakeClock(time.Time{}),
			Observer: &left{}, Runtime: r, Logs: r, Volumes: bareVolumes{}, Status: bareStatus{}, Log: slog.New(slog.DiscardHandler),
		}}
		if err := s.NewPod().Remove(t.Context(), pod.Work{Pod: &v1.Pod{}, Returns: returns}); err != nil {
			t.Error(err)
		}
		if !slices.Equal(r.calls, want) {
			t.Errorf("returns %v: %q, want %q", returns, r.calls, want)
		}
	}
}

// lateContainer is a pod of which the runtime creates a container while it is removed.
type lateContainer struct {
	Observer
	looks int
}

func (l *lateContainer) Refresh(context.Context, types.UID) (pod.Observed, error) {
	l.looks++
	if l.looks == 1 {
		return pod.Observed{}, nil
	}
	return pod.Observed{Containers: []pod.Container{{ID: "late"}}}, nil
}

// A call of a kubelet that was killed may complete late.
func TestRemoveFindsLateContainer(t *testing.T) {
	s := &Steps{deps: Deps{
		Clock:    clocktesting.NewFakeClock(time.Time{}),
		Observer: &lateContainer{}, Runtime: bareRuntime{}, Logs: bareRuntime{}, Volumes: bareVolumes{}, Status: bareStatus{},
		Removed: func(uid types.UID) { t.Error("the pod counts as removed") },
		Log:     slog.New(slog.DiscardHandler),
	}}
	if err := s.NewPod().Remove(t.Context(), pod.Work{Pod: &v1.Pod{}}); err == nil || !strings.Contains(err.Error(), "late") {
		t.Errorf("error %v, want one that names the container", err)
	}
}

// A static pod is removed even if its mirror cannot be deleted: the next pod of its name waits for
// it.
func TestRemoveWithoutAPIServer(t *testing.T) {
	var log strings.Builder
	s := &Steps{deps: Deps{
		Clock:    clocktesting.NewFakeClock(time.Time{}),
		Observer: bare{}, Runtime: bareRuntime{}, Logs: bareRuntime{}, Volumes: bareVolumes{}, Status: bareStatus{}, Mirrors: refusing{},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	}}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "static", UID: "1"}}
	if err := s.NewPod().Remove(t.Context(), pod.Work{Pod: p, Mirror: p}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "connection refused") {
		t.Errorf("failure is not logged: %q", log.String())
	}
}
