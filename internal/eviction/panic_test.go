package eviction

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/contain"
	"swiftlet/internal/stats"
)

// panickyNode panics at the first call of each method, and at each event about the pod "bad".
type panickyNode struct {
	*fakeNode
	signals, usage, storage, summary atomic.Bool
}

func once(done *atomic.Bool) {
	if !done.Swap(true) {
		panic("no stats")
	}
}

func (n *panickyNode) Signals(ctx context.Context) (stats.Signals, error) {
	once(&n.signals)
	return n.fakeNode.Signals(ctx)
}

func (n *panickyNode) UsageSummary(ctx context.Context) (*statsapi.Summary, error) {
	once(&n.usage)
	return n.fakeNode.UsageSummary(ctx)
}

func (n *panickyNode) Summary(ctx context.Context) (*statsapi.Summary, error) {
	once(&n.summary)
	return n.fakeNode.Summary(ctx)
}

func (n *panickyNode) Storage(ctx context.Context, pods []types.UID, maxAge time.Duration) ([]statsapi.PodStats, error) {
	once(&n.storage)
	return n.fakeNode.Storage(ctx, pods, maxAge)
}

func (n *panickyNode) AnnotatedEventf(object runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	if ref, ok := object.(*v1.ObjectReference); ok && ref.Name == "bad" {
		panic("bad pod")
	}
	n.fakeNode.AnnotatedEventf(object, annotations, kind, reason, format, args...)
}

// TestPanicOfCheckEndsNoLaterOne: what a pod does to its usage must not disable evictions, or end the agent.
func TestPanicOfCheckEndsNoLaterOne(t *testing.T) {
	for name, c := range map[string]struct {
		cfg     Config
		prepare func(*fakeNode)
		want    string
	}{
		"memory": {memoryBelow("300"), func(w *fakeNode) { w.add(podRequesting("p", 0, v1.ResourceMemory, ""), 900) }, "evict p Evicted in 1s (disrupted)"},
		"disk": {Config{Thresholds: []Threshold{{Signal: NodeFsAvailable, Value: bytes("300")}}}, func(w *fakeNode) {
			w.disk = 100
			w.add(podRequesting("p", 0, v1.ResourceMemory, ""), 1)
		}, "evict p Evicted in 1s (disrupted)"},
		"own limits": {Config{EnforceStorageLimits: true}, func(w *fakeNode) {
			for _, name := range []string{"bad", "good"} {
				p := podRequesting(name, 0, v1.ResourceEphemeralStorage, "")
				p.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: *bytes("10").Quantity}
				w.add(p, 1)
				w.storage[name] = &statsapi.PodStats{EphemeralStorage: fsOf(11, 1)}
			}
		}, "evict good Evicted in 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFakeNode(t, c.cfg)
				c.prepare(w)
				node := &panickyNode{fakeNode: w}
				panics := 0
				w.deps.Stats, w.deps.Events, w.deps.Panics = node, node, contain.Reporter{Count: func(string) { panics++ }}
				stop := w.run(t)
				time.Sleep(2 * time.Minute)
				stop()
				if got := w.evictions(); !slices.Contains(got, c.want) || panics < 2 {
					t.Errorf("%d panics, no %q in %q", panics, c.want, got)
				}
			})
		})
	}
}
