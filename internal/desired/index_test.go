package desired

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/pod"
)

// TestIndexFollowsSnapshots applies random snapshots of two sources, whose pods share names and UIDs, and change
// the name of a UID, as manifests may. It compares what Get and GetByFullName find with the last snapshots.
func TestIndexFollowsSnapshots(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	d, _ := newPods(t)
	last := map[pod.Source]map[types.UID]string{}
	for round := range 2000 {
		source := []pod.Source{pod.SourceAPI, pod.SourceFile}[random.IntN(2)]
		s, names := pod.Snapshot{Source: source}, map[types.UID]string{}
		for name := range 4 {
			if random.IntN(2) == 0 {
				p := newPod(fmt.Sprint("pod-", name), types.UID(fmt.Sprint("uid-", random.IntN(8))))
				s.Pods = append(s.Pods, p)
				if _, duplicate := names[p.UID]; !duplicate {
					names[p.UID] = p.Name
				}
			}
		}
		d.Apply(s)
		last[source] = names
		wanted := map[types.UID]pod.Source{}
		byName := map[string]types.UID{}
		for _, source := range []pod.Source{pod.SourceAPI, pod.SourceFile} {
			for uid, name := range last[source] {
				wanted[uid], byName[name] = source, uid
			}
		}
		if got := len(d.List()); got != len(wanted) {
			t.Fatalf("round %d: %d pods, want %d", round, got, len(wanted))
		}
		for uid, source := range wanted {
			if p, ok := d.Get(uid); !ok || pod.SourceOf(p) != source {
				t.Fatalf("round %d: pod %s is not that of %s", round, uid, source)
			}
		}
		for name := range 4 {
			name := fmt.Sprint("pod-", name)
			p, ok := d.GetByFullName(pod.Ref{Namespace: "default", Name: name}.FullName())
			if uid, want := byName[name]; ok != want || ok && p.UID != uid {
				t.Fatalf("round %d: %s is not the pod with UID %s", round, name, uid)
			}
		}
	}
}

func newPod(name string, uid types.UID) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid}}
}

// BenchmarkApply applies snapshots of nodes with few and many pods, of which one has changed.
func BenchmarkApply(b *testing.B) {
	for _, count := range []int{10, 1000} {
		b.Run(fmt.Sprint(count, " pods"), func(b *testing.B) {
			d, err := New(Config{Sources: []pod.Source{pod.SourceAPI}}, Deps{Clock: clocktesting.NewFakePassiveClock(start)})
			if err != nil {
				b.Fatal(err)
			}
			s := pod.Snapshot{Source: pod.SourceAPI}
			for i := range count {
				s.Pods = append(s.Pods, newPod(fmt.Sprint("pod-", i), types.UID(fmt.Sprint("uid-", i))))
			}
			d.Apply(s)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				changed := *s.Pods[0]
				changed.Status.StartTime = &metav1.Time{Time: start.Add(time.Duration(i) * time.Second)}
				s.Pods[0] = &changed
				if changes := d.Apply(s); len(changes) != 1 {
					b.Fatalf("%d changes", len(changes))
				}
			}
		})
	}
}
