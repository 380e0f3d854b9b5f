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
