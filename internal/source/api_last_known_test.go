package source

import (
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"swiftlet/internal/kubeclient/kubeclienttest"
	"swiftlet/internal/pod"
)

func unreachableFor(seconds *int64) v1.Toleration {
	return v1.Toleration{Key: v1.TaintNodeUnreachable, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: seconds}
}

func TestWhichLastKnownPodsAreStarted(t *testing.T) {
	fiveMinutes := []v1.Toleration{unreachableFor(ptr.To[int64](300))}
	ofSet := []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", Controller: ptr.To(true)}}
	for name, c := range map[string]struct {
		pod    v1.Pod
		age    time.Duration
		reason string // empty: it is started
	}{
		"within its toleration":         {pod: v1.Pod{Spec: v1.PodSpec{Tolerations: fiveMinutes}}, age: 4 * time.Minute},
		"after its toleration":          {pod: v1.Pod{Spec: v1.PodSpec{Tolerations: fiveMinutes}}, age: 5 * time.Minute, reason: "5m0s ago"},
		"without a toleration":          {age: time.Second, reason: "for 0s"},
		"tolerates for ever":            {pod: v1.Pod{Spec: v1.PodSpec{Tolerations: []v1.Toleration{unreachableFor(nil)}}}, age: 1000 * time.Hour},
		"tolerates everything for ever": {pod: v1.Pod{Spec: v1.PodSpec{Tolerations: []v1.Toleration{{Operator: v1.TolerationOpExists}}}}, age: 1000 * time.Hour},
		"the shortest time counts": {pod: v1.Pod{Spec: v1.PodSpec{Tolerations: []v1.Toleration{unreachableFor(nil), unreachableFor(ptr.To[int64](60)), unreachableFor(ptr.To[int64](300))}}},
			age: 2 * time.Minute, reason: "for 1m0s"},
		"tolerates for more than 292 years": {pod: v1.Pod{Spec: v1.PodSpec{Tolerations: []v1.Toleration{unreachableFor(ptr.To[int64](math.MaxInt64))}}}, age: time.Hour},
		"the clock went back":               {pod: v1.Pod{Spec: v1.PodSpec{Tolerations: fiveMinutes}}, age: -time.Hour, reason: "clock"},
		"of a StatefulSet":                  {pod: v1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: ofSet}, Spec: v1.PodSpec{Tolerations: fiveMinutes}}, reason: "StatefulSet"},
		"of a StatefulSet that allows it": {pod: v1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: ofSet, Annotations: map[string]string{AnnotationLastKnown: "true"}},
			Spec: v1.PodSpec{Tolerations: fiveMinutes}}},
		"being deleted": {pod: v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}, Spec: v1.PodSpec{Tolerations: fiveMinutes}}, reason: "deleted"},
		"finished":      {pod: v1.Pod{Spec: v1.PodSpec{Tolerations: fiveMinutes}, Status: v1.PodStatus{Phase: v1.PodFailed}}, reason: "finished"},
	} {
		t.Run(name, func(t *testing.T) {
			got := notStarted(&c.pod, c.age)
			if (got == "") != (c.reason == "") || !strings.Contains(got, c.reason) {
				t.Errorf("got %q, want %q", got, c.reason)
			}
		})
	}
}

// The pods of the last contact are a partial snapshot, which the first list replaces.
func TestRestoreThenList(t *testing.T) {
	now := time.Date(2026, 11, 18, 0, 0, 0, 0, time.UTC)
	var warned string
	a, err := NewAPI(APIConfig{NodeName: "node-1"}, APIDeps{
		Out: make(chan pod.Snapshot), Client: kubeclienttest.Wrap(fake.NewClientset()), Log: slog.New(slog.DiscardHandler),
		Clock: clocktesting.NewFakePassiveClock(now), Warn: func(reason, message string) { warned = reason + ": " + message },
	})
	if err != nil {
		t.Fatal(err)
	}
	started, waits := apiPod("a"), apiPod("b")
	started.Spec.Tolerations = []v1.Toleration{unreachableFor(ptr.To[int64](300))}
	store := (*apiStore)(a)
	store.Restore([]any{started, waits}, now.Add(-time.Minute))
	if s := a.snapshot(); !s.Partial || s.Listed || len(s.Pods) != 1 || s.Pods[0].Name != "a" {
		t.Errorf("restored %+v", s)
	}
	if !strings.Contains(warned, "LastKnownPods") || !strings.Contains(warned, "1 of 2 pods") {
		t.Errorf("event %q", warned)
	}
	if err := store.Replace([]any{waits}, "1"); err != nil {
		t.Fatal(err)
	}
	store.Restore([]any{started}, now) // too late
	if s := a.snapshot(); s.Partial || !s.Listed || len(s.Pods) != 1 || s.Pods[0].Name != "b" {
		t.Errorf("listed %+v", s)
	}
}
