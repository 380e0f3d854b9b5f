package cgroup

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// TestProtected: the sums are shown with every update, and only if memory is protected, as by the
// reference kubelet.
func TestProtected(t *testing.T) {
	memory := amounts("cpu", "1", "memory", "64Mi")
	pods := []*v1.Pod{
		newPod("guaranteed", container(memory, memory)),
		newPod("burstable", container(amounts("memory", "16Mi"), nil)),
		newPod("besteffort"),
	}
	for name, c := range map[string]struct {
		qos  *MemoryQOS
		want [][2]int64
	}{
		"tiered":     {&MemoryQOS{Tiered: true}, [][2]int64{{64 << 20, 16 << 20}, {0, 0}}},
		"not tiered": {&MemoryQOS{}, nil},
		"no QoS":     {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var shown [][2]int64
			limits := defaults
			limits.MemoryQOS = c.qos
			tree, err := New(Config{Driver: Cgroupfs, Limits: limits}, Deps{
				Hierarchy: Hierarchy{Version: 2, Mounts: map[string]string{"": fakeV2(t)}}, Clock: clock.RealClock{}, Log: discard,
				Protected: func(guaranteed, burstable int64) { shown = append(shown, [2]int64{guaranteed, burstable}) },
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, now := range [][]*v1.Pod{pods, nil} {
				if err := tree.UpdateQOS(now); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(shown, c.want) {
				t.Errorf("shown %v, want %v", shown, c.want)
			}
		})
	}
}
