package eviction

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
	"swiftlet/internal/stats"
)

// fakeNode has 1000 bytes of memory, which its pods use. It is made inside a bubble of
// synctest, so that time is virtual.
type fakeNode struct {
	*Evictor
	mu              sync.Mutex // for what follows
	pods            []*v1.Pod
	memory          uint64
	used            map[string]uint64 // memory, by pod
	storage         map[string]*statsapi.PodStats
	disk            uint64          // available space of nodefs
	images          *uint64         // and of imagefs, if that is another one
	stuck           map[string]bool // pods that do not terminate
	terminationTime time.Duration
	latency         time.Duration // of measuring and removing
	runtimeHangs    bool          // the runtime does not report its file systems
	signalsErr      error
	checks          atomic.Int64
	log             []string // of actions
	changes         int
	ageTaken        []string
}

func newFakeNode(t *testing.T, cfg Config) *fakeNode {
	t.Helper()
	w := &fakeNode{memory: 1000, used: map[string]uint64{}, stuck: map[string]bool{}, storage: map[string]*statsapi.PodStats{}, disk: 1000}
	var err error
	w.Evictor, err = New(cfg, Deps{
		Stats: w, Pods: w, Events: w,
		Node:              &v1.ObjectReference{Kind: "Node", Name: "node"},
		RemoveContainers:  func(context.Context) error { w.record("remove containers"); return nil },
		RemoveImages:      func(context.Context) error { w.record("remove images"); time.Sleep(w.latency); return nil },
		ConditionsChanged: func() { w.changes++ },
		Meters: Meters{
			Evicted:  func(signal string) { w.record("count %s", signal) },
			StatsAge: func(signal string, _ time.Duration) { w.ageTaken = append(w.ageTaken, signal) },
		},
		Clock: clock.RealClock{},
		Log:   slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *fakeNode) record(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// runUntilIdle checks until nothing is in progress any more, as Run does, and returns when the
// next check is due.
func (w *fakeNode) runUntilIdle(t *testing.T) time.Duration {
	t.Helper()
	for {
		wait := w.synchronize(t.Context())
		waited := slices.ContainsFunc(slices.Collect(maps.Values(w.terminating)), func(l *terminatingPod) bool { return !l.stuck })
		if !w.limitCheck.measuring && !w.reclaimed.running && w.reclaimed.result == nil && !waited {
			return wait
		}
		w.sleep(t.Context(), wait, nil, w.completions)
	}
}

func (w *fakeNode) add(p *v1.Pod, used uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods = append(w.pods, p)
	w.used[p.Name] = used
}

func (w *fakeNode) Signals(ctx context.Context) (stats.Signals, error) {
	w.checks.Add(1)
	out, err := w.signals()
	if w.runtimeHangs {
		<-ctx.Done()
		out.Images, out.Containers = nil, nil
	}
	return out, err
}

func (w *fakeNode) signals() (stats.Signals, error) {
	if w.signalsErr != nil {
		return stats.Signals{}, w.signalsErr
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var all uint64
	for _, p := range w.pods {
		all += w.used[p.Name]
	}
	left := w.memory - min(all, w.memory)
	disk := &stats.Disk{Space: stats.Level{Available: w.disk, Capacity: 1000}}
	out := stats.Signals{
		Memory: &stats.Memory{Level: stats.Level{Available: left, Capacity: w.memory, At: time.Now()}, InactiveFile: 7},
		Node:   disk, Images: disk, Containers: disk,
	}
	if w.images != nil {
		out.OwnImageFs = true
		out.Images = &stats.Disk{Space: stats.Level{Available: *w.images, Capacity: 1000}}
		out.Containers = out.Images
	}
	return out, nil
}

func (w *fakeNode) UsageSummary(context.Context) (*statsapi.Summary, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := &statsapi.Summary{}
	for _, p := range w.pods {
		if w.stuck[p.Name] && w.used[p.Name] == 0 {
			continue // its processes are dead
		}
		out.Pods = append(out.Pods, statsapi.PodStats{PodRef: statsapi.PodReference{UID: string(p.UID)}, Memory: memoryOf(w.used[p.Name])})
	}
	return out, nil
}

func (w *fakeNode) Summary(ctx context.Context) (*statsapi.Summary, error) {
	w.record("measure disks")
	time.Sleep(w.latency)
	out, err := w.UsageSummary(ctx)
	for i := range out.Pods {
		if s := w.storage[out.Pods[i].PodRef.UID]; s != nil {
			out.Pods[i].Containers = s.Containers
		}
	}
	return out, err
}

func (w *fakeNode) Storage(_ context.Context, pods []types.UID, _ time.Duration) ([]statsapi.PodStats, error) {
	var all []statsapi.PodStats
	time.Sleep(w.latency)
	for _, uid := range pods {
		w.record("measure %s", uid)
		if s := w.storage[string(uid)]; s != nil {
			s.PodRef.UID = string(uid)
			all = append(all, *s)
		}
	}
	return all, nil
}

func (w *fakeNode) Active() []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.pods)
}

func (w *fakeNode) Evict(uid types.UID, f pod.Failure, grace *int64) bool {
	disruption := ""
	if f.Condition != nil && f.Condition.Message == f.Message {
		disruption = " (disrupted)"
	}
	if f.Signal == "" {
		disruption += " (for no signal)"
	}
	w.record("evict %s %s in %ds%s", uid, f.Reason, *grace, disruption)
	return true
}

func (w *fakeNode) Finished(uid types.UID) (<-chan struct{}, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.pods, func(p *v1.Pod) bool { return p.UID == uid })
	if i < 0 {
		return nil, false
	}
	end := make(chan struct{})
	if !w.stuck[string(uid)] {
		time.AfterFunc(w.terminationTime, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.pods = slices.DeleteFunc(w.pods, func(p *v1.Pod) bool { return p.UID == uid })
			close(end)
		})
	}
	return end, true
}

func (w *fakeNode) Eventf(_ runtime.Object, _, reason, format string, args ...any) {
	w.record("%s: %s", reason, fmt.Sprintf(format, args...))
}

func (w *fakeNode) AnnotatedEventf(o runtime.Object, annotations map[string]string, _, reason, _ string, _ ...any) {
	w.record("%s %s %s", reason, o.(*v1.ObjectReference).Name, annotations["starved_resource"])
}

func (w *fakeNode) expect(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff(want, w.log); diff != "" {
		t.Error(diff)
	}
	w.log = nil
}

// run starts the Evictor; the function it returns stops it.
func (w *fakeNode) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// setUsage sets the memory usage of a pod.
func (w *fakeNode) setUsage(name string, memory uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used[name] = memory
}

// evictions lists the evictions in order.
func (w *fakeNode) evictions() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.log), func(line string) bool { return !strings.HasPrefix(line, "evict ") })
}
