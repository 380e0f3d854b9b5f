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

// world is a machine of 1000 bytes whose pods use some of them. It is made inside a bubble
// of synctest, so that time is its own.
type world struct {
	*Evictor
	mu       sync.Mutex // for what follows
	pods     []*v1.Pod
	memory   uint64
	used     map[string]uint64 // memory, by pod
	storage  map[string]*statsapi.PodStats
	disk     uint64          // what is left of the node's
	images   *uint64         // and of the one for images, if that is another
	stuck    map[string]bool // pods that do not end
	ends     time.Duration
	slow     time.Duration // what measuring and removing takes
	silent   bool          // the runtime does not tell where its disks are
	broken   error
	looks    atomic.Int64
	log      []string // what was done
	changes  int
	ageTaken []string
}

func newWorld(t *testing.T, cfg Config) *world {
	t.Helper()
	w := &world{memory: 1000, used: map[string]uint64{}, stuck: map[string]bool{}, storage: map[string]*statsapi.PodStats{}, disk: 1000}
	var err error
	w.Evictor, err = New(cfg, Deps{
		Stats: w, Pods: w, Events: w,
		Node:             &v1.ObjectReference{Kind: "Node", Name: "node"},
		RemoveContainers: func(context.Context) error { w.do("remove containers"); return nil },
		RemoveImages:     func(context.Context) error { w.do("remove images"); time.Sleep(w.slow); return nil },
		Changed:          func() { w.changes++ },
		Meters: Meters{
			Evicted:  func(signal string) { w.do("count %s", signal) },
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

func (w *world) do(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// finish looks until nothing is under way any more, as Run does, and returns when the next
// look is due.
func (w *world) finish(t *testing.T) time.Duration {
	t.Helper()
	for {
		wait := w.look(t.Context())
		waited := slices.ContainsFunc(slices.Collect(maps.Values(w.leaving)), func(l *leaver) bool { return !l.stuck })
		if !w.limiting && !w.searching && w.found == nil && !waited {
			return wait
		}
		w.sleep(t.Context(), wait, nil, w.thens)
	}
}

func (w *world) add(p *v1.Pod, used uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods = append(w.pods, p)
	w.used[p.Name] = used
}

func (w *world) Signals(ctx context.Context) (stats.Signals, error) {
	w.looks.Add(1)
	out, err := w.signals()
	if w.silent {
		<-ctx.Done()
		out.Images, out.Containers = nil, nil
	}
	return out, err
}

func (w *world) signals() (stats.Signals, error) {
	if w.broken != nil {
		return stats.Signals{}, w.broken
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var all uint64
	for _, p := range w.pods {
		all += w.used[p.Name]
	}
	left := w.memory - min(all, w.memory)
	disk := &stats.Disk{Space: stats.Room{Available: w.disk, Capacity: 1000}}
	out := stats.Signals{
		Memory: &stats.Memory{Room: stats.Room{Available: left, Capacity: w.memory, At: time.Now()}, Idle: 7},
		Node:   disk, Images: disk, Containers: disk,
	}
	if w.images != nil {
		out.OwnImageFs = true
		out.Images = &stats.Disk{Space: stats.Room{Available: *w.images, Capacity: 1000}}
		out.Containers = out.Images
	}
	return out, nil
}

func (w *world) UsageSummary(context.Context) (*statsapi.Summary, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := &statsapi.Summary{}
	for _, p := range w.pods {
		if w.stuck[p.Name] && w.used[p.Name] == 0 {
			continue // nothing of it runs any more
		}
		out.Pods = append(out.Pods, statsapi.PodStats{PodRef: statsapi.PodReference{UID: string(p.UID)}, Memory: memoryOf(w.used[p.Name])})
	}
	return out, nil
}

func (w *world) Summary(ctx context.Context) (*statsapi.Summary, error) {
	w.do("measure disks")
	time.Sleep(w.slow)
	out, err := w.UsageSummary(ctx)
	for i := range out.Pods {
		if s := w.storage[out.Pods[i].PodRef.UID]; s != nil {
			out.Pods[i].Containers = s.Containers
		}
	}
	return out, err
}

func (w *world) Storage(_ context.Context, pods []types.UID, _ time.Duration) ([]statsapi.PodStats, error) {
	var all []statsapi.PodStats
	time.Sleep(w.slow)
	for _, uid := range pods {
		w.do("measure %s", uid)
		if s := w.storage[string(uid)]; s != nil {
			s.PodRef.UID = string(uid)
			all = append(all, *s)
		}
	}
	return all, nil
}

func (w *world) Active() []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.pods)
}

func (w *world) Evict(uid types.UID, f pod.Failure, grace *int64) bool {
	disruption := ""
	if f.Condition != nil && f.Condition.Message == f.Message {
		disruption = " (disrupted)"
	}
	w.do("evict %s %s in %ds%s", uid, f.Reason, *grace, disruption)
	return true
}

func (w *world) Finished(uid types.UID) (<-chan struct{}, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.pods, func(p *v1.Pod) bool { return p.UID == uid })
	if i < 0 {
		return nil, false
	}
	end := make(chan struct{})
	if !w.stuck[string(uid)] {
		time.AfterFunc(w.ends, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.pods = slices.DeleteFunc(w.pods, func(p *v1.Pod) bool { return p.UID == uid })
			close(end)
		})
	}
	return end, true
}

func (w *world) Eventf(_ runtime.Object, _, reason, format string, args ...any) {
	w.do("%s: %s", reason, fmt.Sprintf(format, args...))
}

func (w *world) AnnotatedEventf(o runtime.Object, annotations map[string]string, _, reason, _ string, _ ...any) {
	w.do("%s %s %s", reason, o.(*v1.ObjectReference).Name, annotations["starved_resource"])
}

func (w *world) expect(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff(want, w.log); diff != "" {
		t.Error(diff)
	}
	w.log = nil
}

// run has the world's evictor run until the test calls what it returns.
func (w *world) run(t *testing.T) (stop func()) {
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

// uses sets what a pod has of the memory.
func (w *world) uses(name string, memory uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used[name] = memory
}

// orders lists what pods were told, in order.
func (w *world) orders() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.log), func(line string) bool { return !strings.HasPrefix(line, "evict ") })
}
