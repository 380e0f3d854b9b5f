package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"swiftlet/internal/kubeclient/kubeclienttest"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
)

func apiPod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID(name),
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: v1.PodSpec{NodeName: "node-1"},
	}
}

// runAPI runs a source until the end of the test.
func runAPI(t *testing.T, client *fake.Clientset, ready func(context.Context) error) <-chan pod.Snapshot {
	t.Helper()
	out := make(chan pod.Snapshot)
	a, err := NewAPI(APIConfig{NodeName: "node-1"}, APIDeps{Out: out, Client: kubeclienttest.Wrap(client), Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), Ready: ready})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return out
}

// await receives snapshots until one has these pods.
func await(t *testing.T, snapshots <-chan pod.Snapshot, want ...string) (taken int) {
	t.Helper()
	timeout := time.After(soon)
	var got []string
	for {
		select {
		case s := <-snapshots:
			taken++
			got = nil
			for _, p := range s.Pods {
				if p.ManagedFields != nil {
					t.Error("managed fields are kept")
				}
				got = append(got, p.Name)
			}
			slices.Sort(got)
			if slices.Equal(got, want) {
				return taken
			}
		case <-timeout:
			t.Fatalf("pods %v, want %v", got, want)
		}
	}
}

func TestAPI(t *testing.T) {
	client := fake.NewClientset(apiPod("a"))
	snapshots := runAPI(t, client, nil)
	await(t, snapshots, "a")
	pods := client.CoreV1().Pods("ns")
	if _, err := pods.Create(t.Context(), apiPod("b"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, snapshots, "a", "b")
	if err := pods.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, snapshots, "b")
	for _, action := range client.Actions() {
		if list, ok := action.(clienttesting.ListActionImpl); ok {
			if got := list.ListOptions.FieldSelector; got != "spec.nodeName=node-1" {
				t.Errorf("listed %q", got)
			}
		}
	}
}

// Listed is set only after a list.
func TestAPISnapshotIsListedAfterList(t *testing.T) {
	client := fake.NewClientset(apiPod("a"))
	snapshots := runAPI(t, client, nil)
	if s := <-snapshots; !s.Listed {
		t.Error("the first snapshot is not of a list")
	}
	if _, err := client.CoreV1().Pods("ns").Create(t.Context(), apiPod("b"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := <-snapshots; s.Listed || len(s.Pods) != 2 {
		t.Errorf("after a change: %d pods, listed %v", len(s.Pods), s.Listed)
	}
}

func TestAPIWithoutPods(t *testing.T) {
	await(t, runAPI(t, fake.NewClientset(), nil))
}

func TestAPICoalescesChanges(t *testing.T) {
	client := fake.NewClientset()
	snapshots := runAPI(t, client, nil)
	await(t, snapshots)
	var want []string
	for i := range 60 { // no snapshot is received meanwhile
		name := fmt.Sprintf("p%02d", i)
		want = append(want, name)
		if _, err := client.CoreV1().Pods("ns").Create(t.Context(), apiPod(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if taken := await(t, snapshots, want...); taken > 10 {
		t.Errorf("%d snapshots for a burst of 60 pods", taken)
	}
}

func TestAPIWaitsForNode(t *testing.T) {
	known := make(chan struct{})
	client := fake.NewClientset(apiPod("a"))
	snapshots := runAPI(t, client, func(ctx context.Context) error {
		select {
		case <-known:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	select {
	case <-snapshots:
		t.Fatal("snapshot before the Node was read")
	default:
	}
	if len(client.Actions()) != 0 {
		t.Errorf("request before the Node was read: %v", client.Actions())
	}
	close(known)
	await(t, snapshots, "a")
}

func TestAPIServerUnavailableAtStart(t *testing.T) {
	client := fake.NewClientset(apiPod("a"))
	var tries atomic.Int32
	client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		if tries.Add(1) < 3 {
			return true, nil, errors.New("connection refused")
		}
		return false, nil, nil
	})
	snapshots := runAPI(t, client, nil)
	if taken := await(t, snapshots, "a"); taken != 1 {
		t.Errorf("%d snapshots, want none before the first list", taken)
	}
}

func TestNewNamesMissingDependencies(t *testing.T) {
	for want, err := range map[string]error{
		"new file source: missing Clock, Log, NodeName, Out, Path":        second(NewFile(FileConfig{}, FileDeps{})),
		"new HTTP source: missing Client, Clock, Log, NodeName, Out, URL": second(NewHTTP(HTTPConfig{}, HTTPDeps{})),
		"new API source: missing Client, Clock, Log, NodeName, Out":       second(NewAPI(APIConfig{}, APIDeps{})),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestAPIPodWithInvalidNames: a pod whose names would lead out of its directories is not run, and one that
// runs keeps its last valid version.
func TestAPIPodWithInvalidNames(t *testing.T) {
	s := (*apiStore)(&API{deps: APIDeps{Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)}, pods: map[types.NamespacedName]*v1.Pod{}, changed: notify.New()})
	invalid := func(name string) *v1.Pod {
		p := apiPod(name)
		p.Spec.Volumes = []v1.Volume{{Name: "../../escape"}}
		return p
	}
	if err := s.Replace([]any{apiPod("runs"), invalid("listed")}, "1"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*v1.Pod{invalid("runs"), invalid("added")} {
		if err := s.Update(p); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		if kept := s.pods[types.NamespacedName{Namespace: "ns", Name: "runs"}]; len(s.pods) != 1 || kept == nil || len(kept.Spec.Volumes) != 0 {
			t.Errorf("pods are %v, want the valid version of one", s.pods)
		}
	}
	check()
	if err := s.Replace([]any{invalid("runs"), invalid("listed")}, "2"); err != nil {
		t.Fatal(err)
	}
	check()
}
