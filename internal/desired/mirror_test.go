package desired

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"swiftlet/internal/kubeclient/kubeclienttest"
	"swiftlet/internal/pod"
)

func newMirrors(t *testing.T, client *fake.Clientset, nodeKnown bool) *Mirrors {
	t.Helper()
	m, err := NewMirrors(MirrorConfig{NodeName: "node-1"}, MirrorDeps{
		Client:  kubeclienttest.Wrap(client),
		NodeUID: func() (types.UID, bool) { return "node-uid", nodeKnown },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEnsure(t *testing.T) {
	deleting := parse(t, mirror1)
	deleting.DeletionTimestamp = &metav1.Time{Time: start}
	for name, tc := range map[string]struct {
		mirror    *v1.Pod
		exists    *v1.Pod // in the API server
		nodeKnown bool
		changed   bool
		verbs     []string
	}{
		"no mirror":                                   {nil, nil, true, true, []string{"create"}},
		"no mirror and no Node":                       {nil, nil, false, false, nil},
		"unknown mirror exists":                       {nil, parse(t, mirror1), true, false, []string{"create"}},
		"mirror matches":                              {parse(t, mirror1), parse(t, mirror1), true, false, nil},
		"mirror of an old version":                    {old(t), old(t), true, true, []string{"delete", "create"}},
		"mirror of an old version and no Node":        {old(t), old(t), false, true, []string{"delete"}},
		"mirror of an old version is already deleted": {old(t), nil, true, true, []string{"delete", "create"}},
		"mirror is being deleted":                     {deleting, parse(t, mirror1), true, true, []string{"delete", "create"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if tc.exists != nil {
				if err := client.Tracker().Add(tc.exists); err != nil {
					t.Fatal(err)
				}
			}
			changed, err := newMirrors(t, client, tc.nodeKnown).Ensure(context.Background(), parse(t, static1), tc.mirror)
			if err != nil {
				t.Fatal(err)
			}
			if changed != tc.changed {
				t.Errorf("changed %v, want %v", changed, tc.changed)
			}
			var verbs []string
			for _, action := range client.Actions() {
				verbs = append(verbs, action.GetVerb())
			}
			if diff := cmp.Diff(tc.verbs, verbs); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func old(t *testing.T) *v1.Pod {
	p := parse(t, mirror1)
	p.Annotations[pod.AnnotationMirror] = "an older hash"
	return p
}

// The metadata of a mirror as recorded from the reference kubelet.
func TestMirrorObject(t *testing.T) {
	client := fake.NewClientset()
	static := parse(t, `
metadata:
  name: staticweb-node-1
  namespace: kube-system
  uid: 3fd5bee3b3c875a4e9d0192549c8a281
  annotations:
    kubernetes.io/config.hash: 3fd5bee3b3c875a4e9d0192549c8a281
    kubernetes.io/config.seen: "2026-11-15T01:55:29.968780248Z"
    kubernetes.io/config.source: file
spec: {nodeName: node-1, containers: [{name: c, image: x}]}`)
	if _, err := newMirrors(t, client, true).Ensure(context.Background(), static, nil); err != nil {
		t.Fatal(err)
	}
	got := client.Actions()[0].(clienttesting.CreateAction).GetObject().(*v1.Pod)
	want := parse(t, `
metadata:
  name: staticweb-node-1
  namespace: kube-system
  uid: 3fd5bee3b3c875a4e9d0192549c8a281 # the API server assigns another
  annotations:
    kubernetes.io/config.hash: 3fd5bee3b3c875a4e9d0192549c8a281
    kubernetes.io/config.mirror: 3fd5bee3b3c875a4e9d0192549c8a281
    kubernetes.io/config.seen: "2026-11-15T01:55:29.968780248Z"
    kubernetes.io/config.source: file
  ownerReferences: [{apiVersion: v1, controller: true, kind: Node, name: node-1, uid: node-uid}]
spec: {nodeName: node-1, containers: [{name: c, image: x}]}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, ok := static.Annotations[pod.AnnotationMirror]; ok {
		t.Error("the static pod was changed")
	}
}

func TestDeleteMirror(t *testing.T) {
	client := fake.NewClientset(parse(t, mirror1))
	deleted, err := newMirrors(t, client, true).Delete(context.Background(), pod.Ref{Name: "s-n"}, "m1")
	if err != nil || !deleted {
		t.Fatalf("deleted %v, %v", deleted, err)
	}
	options := client.Actions()[0].(clienttesting.DeleteActionImpl).DeleteOptions
	if *options.GracePeriodSeconds != 0 || *options.Preconditions.UID != "m1" {
		t.Errorf("options %v: want no grace and the mirror's uid", options)
	}
	deleted, err = newMirrors(t, client, true).Delete(context.Background(), pod.Ref{Name: "s-n"}, "m1")
	if err != nil || deleted {
		t.Errorf("second time: deleted %v, %v", deleted, err)
	}
}

func TestEnsureReportsFailure(t *testing.T) {
	client := fake.NewClientset()
	refused := errors.New("refused")
	client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refused })
	if _, err := newMirrors(t, client, true).Ensure(context.Background(), parse(t, static1), nil); !errors.Is(err, refused) {
		t.Errorf("error %v, want %v", err, refused)
	}
}

// The caches of an API server that has just started may lack the old mirror, which then exists on.
func TestEnsureOfAMirrorThatCannotBeReplaced(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		deletion error
		retries  bool
	}{
		"the API server does not know it yet": {apierrors.NewNotFound(pods, "web"), true},
		"it is replaced already":              {apierrors.NewConflict(pods, "web", errors.New("the UID differs")), false},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.deletion })
			client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewAlreadyExists(pods, "web")
			})
			_, err := newMirrors(t, client, true).Ensure(t.Context(), parse(t, static1), old(t))
			if (err != nil) != c.retries {
				t.Errorf("got %v, want an error: %t", err, c.retries)
			}
		})
	}
}
