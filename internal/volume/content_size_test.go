package volume

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// A pod can show an object of a megabyte at any number of paths. The memory of the files is not counted as the
// pod's.
func TestFilesOfObjectsAreLimited(t *testing.T) {
	n := newNode(t)
	large := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large", Namespace: "ns"}, Data: map[string]string{"key": strings.Repeat("x", 1<<20)}}
	if _, err := n.client.CoreV1().ConfigMaps("ns").Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	paths := func(count int) (items []v1.KeyToPath) {
		for i := range count {
			items = append(items, v1.KeyToPath{Key: "key", Path: fmt.Sprint(i)})
		}
		return items
	}
	object := v1.LocalObjectReference{Name: "large"}
	projected := v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: ptr.To[int32](0o644)}}
	for i := range 200 {
		items := []v1.KeyToPath{{Key: "key", Path: fmt.Sprint(i)}}
		projected.Projected.Sources = append(projected.Projected.Sources, v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: object, Items: items}})
	}
	for name, source := range map[string]v1.VolumeSource{
		"items":   {ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: object, Items: paths(200), DefaultMode: ptr.To[int32](0o644)}},
		"sources": projected,
	} {
		if _, err := n.setUpVolume(t.Context(), n.pod(source), "vol"); err == nil || !strings.Contains(err.Error(), "at most 128 MiB") {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}
