package kubeapi

import (
	"context"
	"net/http"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"swiftlet/test/poll"

	"swiftlet/internal/kubeclient/kubeclienttest"
)

var statusForbidden = apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}}

type runner interface {
	Run(context.Context) error
	Synced() <-chan struct{}
	HasSynced() bool
}

func runUntilSynced(t *testing.T, r runner) {
	t.Helper()
	if r.HasSynced() {
		t.Error("synced before it runs")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = r.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	<-r.Synced()
}

func TestServices(t *testing.T) {
	meta := func(ns, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: map[string]string{"large": "x"}, ManagedFields: []metav1.ManagedFieldsEntry{{}}}
	}
	client := fake.NewClientset(
		&v1.Service{ObjectMeta: meta("a", "one"), Spec: v1.ServiceSpec{ClusterIP: "10.0.0.1", Selector: map[string]string{"x": "y"}}},
		&v1.Service{ObjectMeta: meta("b", "two")},
	)
	s, err := NewServices(kubeclienttest.Wrap(client))
	if err != nil {
		t.Fatal(err)
	}
	runUntilSynced(t, s)
	got := s.List("a")
	if len(got) != 1 || got[0].Name != "one" || got[0].Spec.ClusterIP != "10.0.0.1" {
		t.Fatalf("services of a: %v", got)
	}
	if len(got[0].Annotations)+len(got[0].ManagedFields)+len(got[0].Spec.Selector) > 0 {
		t.Error("fields are stored that environments do not need")
	}
	if _, err := client.CoreV1().Services("a").Create(t.Context(), &v1.Service{ObjectMeta: meta("a", "late")}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the new service", func() bool { return len(s.List("a")) == 2 })
	if err := client.CoreV1().Services("a").Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the deletion", func() bool { return len(s.List("a")) == 1 })
}

func TestNode(t *testing.T) {
	client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: v1.NodeStatus{Images: []v1.ContainerImage{{}}}})
	n, err := NewNode(kubeclienttest.Wrap(client), "node-1")
	if err != nil {
		t.Fatal(err)
	}
	changes := make(chan struct{}, 10)
	n.OnChange(func() { changes <- struct{}{} })
	runUntilSynced(t, n)
	<-changes
	node, err := n.Get()
	if ttl := n.ObjectTTL(); ttl != time.Minute {
		t.Errorf("the TTL without an annotation is %s, want a minute", ttl)
	}
	if err != nil || len(node.Status.Images) > 0 {
		t.Errorf("%v, %d images stored", err, len(node.Status.Images))
	}
	if _, err := client.CoreV1().Nodes().Update(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"zone": "a"}}}, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-changes
	if node, err = n.Get(); err != nil || node.Labels["zone"] != "a" {
		t.Errorf("after the change: %v, %v", node.Labels, err)
	}
	for annotation, want := range map[string]time.Duration{"0": 0, "15": 15 * time.Second, "soon": time.Minute} {
		if _, err := client.CoreV1().Nodes().Update(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1",
			Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": annotation}}}, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		<-changes
		if got := n.ObjectTTL(); got != want {
			t.Errorf("the TTL of annotation %q is %s, want %s", annotation, got, want)
		}
	}
}

func TestRuntimeClasses(t *testing.T) {
	r, err := NewRuntimeClasses(kubeclienttest.Wrap(fake.NewClientset(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "vm"}, Handler: "kata"})))
	if err != nil {
		t.Fatal(err)
	}
	runUntilSynced(t, r)
	if got, err := r.Get("vm"); err != nil || got.Handler != "kata" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := r.Get("none"); !apierrors.IsNotFound(err) {
		t.Errorf("a missing class: %v, want NotFound", err)
	}
}
