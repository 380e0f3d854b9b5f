package podsync

import (
	"context"
	"errors"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

func TestPinCPUs(t *testing.T) {
	p := &v1.Pod{}
	p.UID = "u"
	on := func(id, name, cpus string, state pod.ContainerState) pod.Container {
		return pod.Container{ID: id, Name: name, State: state, Resources: &pod.ContainerResources{CPUs: cpus}}
	}
	observed := &pod.Observed{Containers: []pod.Container{
		on("1", "moves", "0-3", pod.Running), on("2", "stays", "0-1", pod.Running), on("3", "ended", "0-3", pod.Exited),
		{ID: "4", Name: "unknown", State: pod.Running}, {ID: "5", Name: "free", State: pod.Running}, on("6", "fails", "", pod.Running),
	}}
	shared := "0-1"
	var pinned []string
	steps := &Steps{deps: Deps{Node: Node{Pinning: Pinning{
		CPUs: func(_ types.UID, container string) string {
			if container == "free" {
				return ""
			}
			return shared
		},
		Pin: func(_ context.Context, id, cpus string) error {
			pinned = append(pinned, id+":"+cpus)
			if id == "6" {
				return errors.New("gone")
			}
			return nil
		},
	}}}}
	s := steps.NewPod()
	for _, c := range []struct {
		shared string
		want   []string
	}{
		{"0-1", []string{"1:0-1", "4:0-1", "6:0-1"}},
		{"0-1", []string{"6:0-1"}}, // only the failed one is retried
		{"0-2", []string{"1:0-2", "2:0-2", "4:0-2", "6:0-2"}},
		{"0-1", []string{"1:0-1", "2:0-1", "4:0-1", "6:0-1"}}, // observed cpusets are out of date
	} {
		shared, pinned = c.shared, nil
		if err := s.pinCPUs(context.Background(), p, observed); err == nil {
			t.Error("no error")
		}
		if !slices.Equal(pinned, c.want) {
			t.Errorf("to %s: pinned %v, want %v", c.shared, pinned, c.want)
		}
	}
}
