package kubeapi

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func localMap(name, value string) *v1.ConfigMap {
	return &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string]string{"k": value}}
}

func TestLocal(t *testing.T) {
	l := NewLocal()
	var notified []string
	l.OnChange(func(kind, namespace, name string) { notified = append(notified, kind+" "+namespace+"/"+name) })
	expect := func(want ...string) {
		t.Helper()
		slices.Sort(notified)
		if diff := cmp.Diff(want, notified); diff != "" {
			t.Error(diff)
		}
		notified = nil
	}
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}}

	if _, err := l.ConfigMap(t.Context(), "ns", "a"); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want not found", err)
	}
	l.SetObjects([]*v1.ConfigMap{localMap("a", "1"), localMap("b", "1")}, []*v1.Secret{secret})
	expect("ConfigMap ns/a", "ConfigMap ns/b", "Secret ns/s")
	if c, err := l.ConfigMap(t.Context(), "ns", "a"); err != nil || c.Data["k"] != "1" {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := l.ConfigMap(t.Context(), "other", "a"); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want not found in another namespace", err)
	}
	l.SetObjects([]*v1.ConfigMap{localMap("a", "2"), localMap("b", "1")}, []*v1.Secret{secret})
	expect("ConfigMap ns/a")
	l.SetObjects([]*v1.ConfigMap{localMap("a", "2")}, nil)
	expect("ConfigMap ns/b", "Secret ns/s")
	if _, err := l.Secret(t.Context(), "ns", "s"); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want not found", err)
	}
}
