package why

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func newPod(containers ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"}}
	p.Spec.NodeName = "n1"
	for _, name := range containers {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: name, Image: "docker.io/x:1"})
	}
	return p
}

// lastStep is the step of the pod that began last.
func lastStep(t *testing.T, b *Tracker) StepReport {
	t.Helper()
	r, found := b.Report("u1", nil, at(100))
	if !found {
		t.Fatal("the pod is not tracked")
	}
	return r.Steps[len(r.Steps)-1]
}

func TestAttemptsCountUntilSuccess(t *testing.T) {
	b, image := New(), Step{Image, "app"}
	b.Track(newPod("app"), Starting, nil, at(0))
	b.Begin("u1", image, at(1))
	if got := lastStep(t, b); got.State != running || got.Attempts != 1 || !got.Since.Equal(at(1)) {
		t.Errorf("while it runs: %+v", got)
	}
	b.End("u1", image, errors.New("no"), at(2), at(12))
	b.Begin("u1", image, at(12))
	b.Postpone("u1", image, at(14)) // no attempt, because of the back-off
	if got := lastStep(t, b); got.State != failed || got.Attempts != 1 || !got.Since.Equal(at(1)) || !got.Next.Equal(at(14)) || got.Error != "no" {
		t.Errorf("after a failure: %+v", got)
	}
	b.Begin("u1", image, at(14))
	b.End("u1", image, nil, at(15), time.Time{})
	if got := lastStep(t, b); got.State != done || got.Attempts != 2 || !got.Since.Equal(at(1)) || got.Error != "no" {
		t.Errorf("after success: %+v", got)
	}
	b.Begin("u1", image, at(50))
	if got := lastStep(t, b); got.Attempts != 1 || !got.Since.Equal(at(50)) || got.Error != "" {
		t.Errorf("the next start: %+v", got)
	}
}

func TestUnknownPodsAndNilBookAreIgnored(t *testing.T) {
	for _, b := range []*Tracker{nil, New()} {
		b.Begin("u1", Step{}, at(0))
		b.End("u1", Step{}, nil, at(0), at(0))
		b.Forget("u1")
		b.Settled("u1")
		if _, found := b.Report("u1", nil, at(0)); found {
			t.Error("a pod that is not tracked has a report")
		}
		if _, found := b.Find("default", "web"); found {
			t.Error("a pod that is not tracked is found")
		}
	}
}

func TestFindsStaticPodByNameOfManifest(t *testing.T) {
	b := New()
	static := newPod("app")
	static.Name, static.UID, static.Annotations = "web-n1", "static", map[string]string{pod.AnnotationSource: "file"}
	b.Track(static, Starting, nil, at(0))
	if uid, _ := b.Find("default", "web"); uid != "static" {
		t.Errorf("by the name of its manifest: %q", uid)
	}
	if uid, _ := b.Find("default", "web-n1"); uid != "static" {
		t.Errorf("by its own name: %q", uid)
	}
	b.Track(newPod("app"), Starting, nil, at(-5))
	if uid, _ := b.Find("default", "web"); uid != "u1" {
		t.Errorf("%q, want the pod of exactly this name", uid)
	}
}

func TestForgottenWithPod(t *testing.T) {
	b := New()
	b.Track(newPod("app"), Starting, nil, at(0))
	if uid, found := b.Find("default", "web"); !found || uid != "u1" {
		t.Errorf("found %q, %v", uid, found)
	}
	b.Forget("u1")
	if len(b.pods) != 0 {
		t.Errorf("%d pods are kept", len(b.pods))
	}
}

// fill records more steps than are kept of a settled pod, each with a long error before its success.
func fill(b *Tracker, uid types.UID, containers int) {
	p := newPod()
	p.UID = uid
	b.Track(p, Starting, nil, at(0))
	for i := range containers {
		for _, kind := range []Kind{Image, Create, Start, PostStart} {
			s := Step{kind, fmt.Sprintf("c%d", i)}
			b.End(uid, s, errors.New(strings.Repeat("long ", 1000)), at(1), at(2))
			b.End(uid, s, nil, at(3), time.Time{})
		}
	}
	b.Settled(uid)
}

// TestMemoryOfSettledPod holds the memory of pods with any number of containers.
func TestMemoryOfSettledPod(t *testing.T) {
	const limit, pods = 4 << 10, 200
	if size := unsafe.Sizeof(entry{}); maxSettled*size > limit*3/4 {
		t.Errorf("%d steps of %d bytes leave no room for the rest", maxSettled, size)
	}
	for _, containers := range []int{1, 8, 60} {
		b := New()
		fill(b, "warm", containers)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range pods {
			fill(b, types.UID(fmt.Sprintf("pod-%036d", i)), containers)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		var shared int64 // the pods themselves, which their workers hold as well
		for _, r := range b.pods {
			shared += int64(unsafe.Sizeof(*r.pod))
		}
		each := (int64(after.HeapAlloc-before.HeapAlloc) - shared) / pods
		t.Logf("%d containers: %d bytes for each pod", containers, each)
		if each > limit {
			t.Errorf("%d containers: %d bytes for each pod, want at most %d", containers, each, limit)
		}
		runtime.KeepAlive(b)
	}
}

func TestUnsettledPodIsBounded(t *testing.T) {
	b := New()
	b.Track(newPod(), Starting, nil, at(0))
	for i := range 5000 {
		b.Begin("u1", Step{Create, fmt.Sprint(i)}, at(0))
	}
	if n := len(b.pods["u1"].steps); n != maxSteps {
		t.Errorf("%d steps are kept, want %d", n, maxSteps)
	}
	if r, _ := b.Report("u1", nil, at(1)); r.Omitted != 5001-maxSteps {
		t.Errorf("%d steps omitted", r.Omitted)
	}
}

// BenchmarkStep shows what recording costs.
func BenchmarkStep(b *testing.B) {
	tracker, p := New(), newPod("app")
	tracker.Track(p, Starting, nil, noon)
	for i := range 10 {
		tracker.Begin("u1", Step{Volume, fmt.Sprint(i)}, noon)
	}
	b.ReportAllocs()
	for b.Loop() {
		tracker.Begin("u1", Step{Create, "app"}, noon)
		tracker.End("u1", Step{Create, "app"}, nil, noon, time.Time{})
	}
}
