package eviction

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// The messages are those of the reference kubelet, which programs match.
func TestExplain(t *testing.T) {
	hungry := podRequesting("hungry", 0, v1.ResourceMemory, "100Mi")
	whole := podRequesting("whole", 0, v1.ResourceMemory, "")
	whole.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Mi")}}
	debugged := podRequesting("debugged", 0, v1.ResourceMemory, "")
	debugged.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
	at := Level{Available: 50 << 20, Capacity: 1 << 30}
	cases := []struct {
		name        string
		pod         *v1.Pod
		used        *statsapi.PodStats
		threshold   Threshold
		level       Level
		message     string
		annotations map[string]string
	}{
		{"memory", hungry, &statsapi.PodStats{Containers: []statsapi.ContainerStats{{Name: "c", Memory: memoryOf(300 << 20)}}},
			Threshold{Signal: MemoryAvailable, Value: bytes("100Mi")}, at,
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container c was using 300Mi, request is 100Mi, has larger consumption of memory. ",
			map[string]string{"offending_containers": "c", "offending_containers_usage": "300Mi", "starved_resource": "memory"}},
		{"no container over its request", hungry, &statsapi.PodStats{Containers: []statsapi.ContainerStats{{Name: "c", Memory: memoryOf(1)}}},
			Threshold{Signal: MemoryAvailable, Value: Amount{Percentage: 0.25}}, at,
			"The node was low on resource: memory. Threshold quantity: 256Mi, available: 50Mi. ",
			map[string]string{"offending_containers": "", "offending_containers_usage": "", "starved_resource": "memory"}},
		{"no usage known", hungry, nil, Threshold{Signal: PIDAvailable, Value: bytes("10")}, Level{Available: 5, Capacity: 100},
			"The node was low on resource: pids. Threshold quantity: 10, available: 5. ", map[string]string{}},
		{"pod-level memory request", whole, &statsapi.PodStats{Memory: memoryOf(2 << 20)}, Threshold{Signal: MemoryAvailable, Value: bytes("100Mi")}, at,
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Pod whole was using 2Mi, request is 1Mi, has larger consumption of memory. ",
			map[string]string{"offending_containers": "", "offending_containers_usage": "", "starved_resource": "memory", "offending_pod": "whole", "offending_pod_usage": "2Mi"}},
		{"disk", hungry, &statsapi.PodStats{Containers: []statsapi.ContainerStats{{Name: "c", Rootfs: fsOf(1<<20, 1), Logs: fsOf(1<<20, 1)}}},
			Threshold{Signal: NodeFsAvailable, Value: bytes("1Gi")}, at,
			"The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 50Mi. Container c was using 2Mi, request is 0, has larger consumption of ephemeral-storage. ",
			map[string]string{"offending_containers": "c", "offending_containers_usage": "2Mi", "starved_resource": "ephemeral-storage"}},
		{"inodes", hungry, &statsapi.PodStats{Containers: []statsapi.ContainerStats{{Name: "c", Rootfs: fsOf(1, 1000), Logs: fsOf(1, 1)}}},
			Threshold{Signal: NodeFsInodesFree, Value: bytes("1k")}, Level{Available: 2000, Capacity: 3000},
			"The node was low on resource: inodes. Threshold quantity: 1k, available: 2k. ",
			map[string]string{"offending_containers": "", "offending_containers_usage": "", "starved_resource": "inodes"}},
		{"ephemeral container is not listed", debugged, &statsapi.PodStats{Containers: []statsapi.ContainerStats{{Name: "debug", Memory: memoryOf(1 << 20)}}},
			Threshold{Signal: MemoryAvailable, Value: bytes("100Mi")}, at,
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ",
			map[string]string{"offending_containers": "", "offending_containers_usage": "", "starved_resource": "memory"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := explain(c.pod, c.used, c.threshold, c.level)
			if diff := cmp.Diff(c.message, got.message); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.annotations, got.annotations); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExceededLimit(t *testing.T) {
	limited := func(volume, container string) *v1.Pod {
		p := podRequesting("p", 0, "", "")
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		if volume != "" {
			q := resource.MustParse(volume)
			p.Spec.Volumes[0].EmptyDir.SizeLimit = &q
		}
		if container != "" {
			p.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse(container)}
		}
		return p
	}
	used := func(volume, layer, log uint64) *statsapi.PodStats {
		return &statsapi.PodStats{
			Containers:       []statsapi.ContainerStats{{Name: "c", Rootfs: fsOf(layer, 1), Logs: fsOf(log, 1)}},
			VolumeStats:      []statsapi.VolumeStats{{Name: "v", FsStats: *fsOf(volume, 1)}},
			EphemeralStorage: fsOf(volume+layer+log, 3),
		}
	}
	unbounded := limited("", "")
	inMemory := limited("10", "")
	inMemory.Spec.Volumes[0].EmptyDir.Medium = v1.StorageMediumMemory
	two := limited("", "100")
	two.Spec.Containers = append(two.Spec.Containers, v1.Container{Name: "d", Resources: v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("1000")}}})
	cases := []struct {
		name            string
		pod             *v1.Pod
		used            *statsapi.PodStats
		layout          Layout
		hasStorageLimit bool
		want            *violation
	}{
		{"no limits", unbounded, used(1e9, 1e9, 1e9), Layout{}, false, nil},
		{"within", limited("10", "100"), used(10, 50, 40), Layout{}, true, nil},
		{"a volume", limited("10", ""), used(11, 0, 0), Layout{}, true, &violation{emptyDirLimit, `Usage of EmptyDir volume "v" exceeds the limit "10". `}},
		{"memory-backed volume", inMemory, used(11, 0, 0), Layout{}, false, nil},
		{"pod limit exceeded by volume, layer and log", limited("", "100"), used(60, 30, 11), Layout{}, true, &violation{podLimit, "Pod ephemeral local storage usage exceeds the total limit of containers 100. "}},
		{"limit of one of two containers", two, used(0, 60, 41), Layout{}, true, &violation{containerLimit, `Container c exceeded its local ephemeral storage limit "100". `}},
		{"writable layer on another file system", two, used(0, 60, 41), Layout{OwnImageFs: true}, true, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := hasStorageLimit(c.pod); got != c.hasStorageLimit {
				t.Errorf("hasStorageLimit is %v", got)
			}
			if diff := cmp.Diff(c.want, exceededLimit(c.pod, c.used, c.layout), cmp.AllowUnexported(violation{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
