package metrics

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

func TestUserNamespacedPods(t *testing.T) {
	m, err := New(clock.RealClock{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	started, began := m.Runtime().Started, m.Podsync().Began
	namespaced := &v1.Pod{Spec: v1.PodSpec{HostUsers: ptr.To(false)}}
	hostUsers := &v1.Pod{Spec: v1.PodSpec{HostUsers: ptr.To(true)}}
	started(namespaced, nil) // the sandbox started
	began(namespaced, true)  // a container failed
	started(namespaced, nil)
	began(namespaced, false)
	started(hostUsers, errors.New("no"))
	began(hostUsers, true)
	got := text(t, m.registry)
	for _, want := range []string{
		"kubelet_started_pods_total 3",
		"kubelet_started_pods_errors_total 1",
		"kubelet_started_user_namespaced_pods_total 2",
		"kubelet_started_user_namespaced_pods_errors_total 1",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("missing %s in\n%s", want, got)
		}
	}
}
