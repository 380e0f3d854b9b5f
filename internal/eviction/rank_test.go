package eviction

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// podRequesting makes a pod that requests some of a resource; request "" means none.
func podRequesting(name string, priority int32, of v1.ResourceName, request string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name)}}
	p.Spec.Priority = &priority
	c := v1.Container{Name: "c"}
	if request != "" {
		c.Resources.Requests = v1.ResourceList{of: resource.MustParse(request)}
	}
	p.Spec.Containers = []v1.Container{c}
	return p
}

func amount(n uint64) *uint64 { return &n }

func fsOf(bytes, inodes uint64) *statsapi.FsStats {
	return &statsapi.FsStats{UsedBytes: &bytes, InodesUsed: &inodes}
}

func memoryOf(bytes uint64) *statsapi.MemoryStats {
	return &statsapi.MemoryStats{WorkingSetBytes: &bytes}
}

func names(pods []*v1.Pod) string {
	var all []string
	for _, p := range pods {
		all = append(all, p.Name)
	}
	return strings.Join(all, " ")
}

func TestRankForMemory(t *testing.T) {
	pods := []*v1.Pod{
		podRequesting("within", 0, v1.ResourceMemory, "1000"),
		podRequesting("over-little", 0, v1.ResourceMemory, "100"),
		podRequesting("over-much", 0, v1.ResourceMemory, ""),
		podRequesting("over-important", 1000, v1.ResourceMemory, ""),
		podRequesting("within-unimportant", -5, v1.ResourceMemory, "1000"),
		podRequesting("unknown", 1000, v1.ResourceMemory, ""),
	}
	used := podUsage{
		"within":             {Memory: memoryOf(999)},
		"over-little":        {Memory: memoryOf(150)},
		"over-much":          {Memory: memoryOf(500)},
		"over-important":     {Memory: memoryOf(5000)},
		"within-unimportant": {Memory: memoryOf(1000)},
	}
	want := "unknown over-much over-little over-important within-unimportant within"
	for _, s := range []Signal{MemoryAvailable, AllocatableMemoryAvailable} {
		if got := names(rank(pods, used, s, Layout{})); got != want {
			t.Errorf("%s: %s, not %s", s, got, want)
		}
	}
}

func TestRankForProcesses(t *testing.T) {
	pods := []*v1.Pod{podRequesting("few", 0, "", ""), podRequesting("many", 0, "", ""), podRequesting("important", 1, "", ""), podRequesting("unknown", 0, "", "")}
	used := podUsage{
		"few":       {ProcessStats: &statsapi.ProcessStats{ProcessCount: amount(1)}},
		"many":      {ProcessStats: &statsapi.ProcessStats{ProcessCount: amount(100)}},
		"important": {ProcessStats: &statsapi.ProcessStats{ProcessCount: amount(1000)}},
	}
	if got, want := names(rank(pods, used, PIDAvailable, Layout{})), "unknown many few important"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func TestRankForDisks(t *testing.T) {
	volume := podRequesting("volume", 0, v1.ResourceEphemeralStorage, "50")
	volume.Spec.Volumes = []v1.Volume{
		{Name: "disk", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "memory", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}},
		{Name: "claim", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{}}},
	}
	pods := []*v1.Pod{podRequesting("layer", 0, "", ""), podRequesting("log", 0, "", ""), volume}
	used := podUsage{
		"layer": {Containers: []statsapi.ContainerStats{{Name: "c", Rootfs: fsOf(300, 10)}}},
		"log":   {Containers: []statsapi.ContainerStats{{Name: "c", Logs: fsOf(200, 1)}}},
		"volume": {VolumeStats: []statsapi.VolumeStats{
			{Name: "disk", FsStats: *fsOf(150, 99)}, {Name: "memory", FsStats: *fsOf(1e6, 1e6)}, {Name: "claim", FsStats: *fsOf(1e6, 1e6)}}},
	}
	cases := []struct {
		signal Signal
		layout Layout
		want   string
	}{
		{NodeFsAvailable, Layout{}, "layer log volume"},
		{NodeFsInodesFree, Layout{}, "volume layer log"},
		{NodeFsAvailable, Layout{OwnImageFs: true}, "log volume layer"},
		{ImageFsAvailable, Layout{OwnImageFs: true}, "layer log volume"},
	}
	for _, c := range cases {
		if got := names(rank(pods, used, c.signal, c.layout)); got != c.want {
			t.Errorf("%s %+v: %s, not %s", c.signal, c.layout, got, c.want)
		}
	}
}

// The rank does not depend on the order in which pods are listed, and no pod within its request
// ranks before one over it.
func TestRankInvariants(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 3))
		var pods []*v1.Pod
		used := podUsage{}
		for i := range 10 {
			p := podRequesting(string(rune('a'+i)), int32(random.IntN(3)), v1.ResourceMemory, resource.NewQuantity(random.Int64N(100), resource.BinarySI).String())
			pods = append(pods, p)
			used[p.UID] = &statsapi.PodStats{Memory: memoryOf(uint64(random.IntN(200)*10 + i))}
		}
		got := rank(pods, used, MemoryAvailable, Layout{})
		mixed := slices.Clone(pods)
		random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if diff := cmp.Diff(names(got), names(rank(mixed, used, MemoryAvailable, Layout{}))); diff != "" && distinct(got, used) {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		within := false
		for _, p := range got {
			overRequest := workingSet(used[p.UID].Memory) > requested(p, v1.ResourceMemory)
			if overRequest && within {
				t.Fatalf("seed %d: %s ranks after a pod within its request", seed, p.Name)
			}
			within = within || !overRequest
		}
	}
}

// distinct reports whether no two pods rank the same.
func distinct(pods []*v1.Pod, used podUsage) bool {
	for i := 1; i < len(pods); i++ {
		a, b := candidateOf(pods[i-1], used[pods[i-1].UID], MemoryAvailable, Layout{}), candidateOf(pods[i], used[pods[i].UID], MemoryAvailable, Layout{})
		if a.overRequest == b.overRequest && a.priority == b.priority && a.excess == b.excess {
			return false
		}
	}
	return true
}

func TestRequested(t *testing.T) {
	p := podRequesting("p", 0, v1.ResourceMemory, "100")
	p.Spec.Overhead = v1.ResourceList{v1.ResourceMemory: resource.MustParse("10"), v1.ResourceEphemeralStorage: resource.MustParse("7")}
	if got := requested(p, v1.ResourceMemory); got != 110 {
		t.Errorf("with overhead: %d, want 110", got)
	}
	if got := requested(p, v1.ResourceEphemeralStorage); got != 0 {
		t.Errorf("overhead without a request: %d, want 0", got)
	}
	p.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("500")}}
	if got := requested(p, v1.ResourceMemory); got != 510 {
		t.Errorf("pod-level request: %d, want 510", got)
	}
}
