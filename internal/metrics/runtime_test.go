package metrics

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

func TestPodsWithUsersOfTheirOwn(t *testing.T) {
	m, err := New(clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	started, began := m.Runtime().Started, m.Podsync().Began
	own := &v1.Pod{Spec: v1.PodSpec{HostUsers: ptr.To(false)}}
	hosts := &v1.Pod{Spec: v1.PodSpec{HostUsers: ptr.To(true)}}
	started(own, nil) // its sandbox came up
	began(own, true)  // a container did not
	started(own, nil)
	began(own, false)
	started(hosts, errors.New("no"))
	began(hosts, true)
	got := text(t, m.registry)
	for _, want := range []string{
		"kubelet_started_pods_total 3",
		"kubelet_started_pods_errors_total 1",
		"kubelet_started_user_namespaced_pods_total 2",
		"kubelet_started_user_namespaced_pods_errors_total 1",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
}
