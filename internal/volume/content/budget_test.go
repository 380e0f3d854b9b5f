package content

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/volume/atomicdir"
)

// The volumes of a pod share one limit. A volume that is refreshed counts once, and a pod that is gone not at all.
func TestBudgetOfPod(t *testing.T) {
	files := func(size int) atomicdir.Payload { return atomicdir.Payload{"f": {Data: make([]byte, size)}} }
	b := NewBudget()
	for i, c := range []struct {
		pod, volume string
		size        int
		ok          bool
	}{
		{"p", "a", maxPodFiles - 10, true},
		{"p", "b", 11, false},
		{"p", "b", 10, true},
		{"q", "b", 11, true},
		{"p", "a", maxPodFiles - 10, true},
		{"p", "a", 5, true},
		{"p", "b", 100, true},
	} {
		if err := b.take(types.UID(c.pod), c.volume, files(c.size)); (err == nil) != c.ok {
			t.Errorf("%d: %v", i, err)
		}
	}
	b.Forget("p")
	if err := b.take("p", "c", files(maxPodFiles)); err != nil || len(b.pods) != 2 {
		t.Errorf("after Forget: %v, %d pods", err, len(b.pods))
	}
}
