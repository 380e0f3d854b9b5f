package eviction

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"

	"swiftlet/internal/cgroup"
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

func memoryBelow(least string) Config {
	return Config{Thresholds: []Threshold{{Signal: MemoryAvailable, Least: bytes(least)}}, Transition: time.Minute}
}

func TestTheGreatestExcessGoesFirstAndNoMoreThanNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memoryBelow("300"))
		w.add(using("small", 0, v1.ResourceMemory, ""), 100)
		w.add(using("large", 0, v1.ResourceMemory, ""), 200)
		w.add(using("asked", 0, v1.ResourceMemory, "500"), 450)
		w.ends = time.Second
		before := time.Now()
		if wait := w.look(t.Context()); wait != 0 {
			t.Errorf("after an eviction the next look is in %v", wait)
		}
		w.finish(t)
		if took := time.Since(before); took != w.ends {
			t.Errorf("it was waited %v for the pod's end", took)
		}
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory", "Evicted large memory",
			"evict large Evicted in 1s (disrupted)", "count memory.available")
		if !slices.Equal(w.Conditions(), []v1.NodeConditionType{v1.NodeMemoryPressure}) || w.changes != 1 {
			t.Errorf("conditions are %v after %d changes", w.Conditions(), w.changes)
		}
		if !slices.Equal(w.ageTaken, []string{"memory.available"}) {
			t.Errorf("ages were taken of %v", w.ageTaken)
		}
		w.look(t.Context())
		w.expect(t) // there is enough now
	})
}

func TestCriticalPodsAreSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memoryBelow("300"))
		w.add(using("critical", 2_000_000_000, v1.ResourceMemory, ""), 900)
		static := using("static", 0, v1.ResourceMemory, "")
		static.Annotations = map[string]string{pod.AnnotationSource: "file"}
		w.add(static, 50)
		for _, want := range []time.Duration{1, 2, 4} {
			wait := w.look(t.Context())
			if wait != want*time.Second {
				t.Errorf("the next look is in %v, want %d s", wait, want)
			}
			time.Sleep(wait)
		}
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory") // once, not three times
		w.look(t.Context())                                               // in vain, and the next try put off
		if wait := w.look(t.Context()); wait != 8*time.Second {
			t.Errorf("the next look is in %v, want 8 s", wait)
		}
		// A pod that can go has it tried at once.
		w.add(using("other", 0, v1.ResourceMemory, ""), 10)
		w.look(t.Context())
		w.expect(t, "Evicted other memory", "evict other Evicted in 1s (disrupted)", "count memory.available")
	})
}

func TestSoftThresholdsGiveTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{Thresholds: []Threshold{{Signal: MemoryAvailable, Least: bytes("300"), Grace: 15 * time.Second}}, Transition: time.Minute, MaxGrace: 20})
		p := using("p", 0, v1.ResourceMemory, "")
		p.Spec.TerminationGracePeriodSeconds = new(int64)
		*p.Spec.TerminationGracePeriodSeconds = 30
		w.add(p, 900)
		waited := time.Duration(0)
		for len(w.log) == 0 {
			wait := w.look(t.Context())
			time.Sleep(wait)
			waited += wait
		}
		if waited != 15*time.Second {
			t.Errorf("it was evicted after %v", waited)
		}
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim memory", "Evicted p memory", "evict p Evicted in 20s (disrupted)", "count memory.available")
	})
}

func TestWhatNobodyUsesGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{Thresholds: []Threshold{{Signal: NodeFsAvailable, Least: bytes("100")}}, Transition: time.Minute})
		w.add(using("p", 0, v1.ResourceMemory, ""), 1)
		w.disk = 99
		w.deps.RemoveImages = func(context.Context) error { w.do("remove images"); w.disk = 500; return nil }
		w.finish(t)
		w.expect(t, "EvictionThresholdMet: Attempting to reclaim ephemeral-storage", "remove containers", "remove images")

		w.disk = 99
		w.deps.RemoveImages = func(context.Context) error { w.do("remove images"); return errors.New("busy") }
		w.finish(t)
		w.expect(t, "remove containers", "remove images", "measure disks", "Evicted p ephemeral-storage", "evict p Evicted in 1s (disrupted)", "count nodefs.available")
	})
}

func TestLimitsAreEnforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{Limits: true, Transition: time.Minute})
		limited := using("limited", 0, "", "")
		limited.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("10")}
		w.add(limited, 0)
		w.add(using("free", 0, "", ""), 0)
		w.storage["limited"] = &statsapi.PodStats{EphemeralStorage: fsOf(5, 1)}
		w.finish(t)
		w.finish(t) // too soon to measure again
		w.expect(t, "measure limited")
		time.Sleep(period)
		w.storage["limited"] = &statsapi.PodStats{EphemeralStorage: fsOf(11, 1)}
		w.finish(t)
		w.expect(t, "measure limited", "Evicted limited ", "evict limited Evicted in 1s", "count ephemeralpodfs.limit")
		time.Sleep(period)
		w.finish(t) // nobody is left who has limits
		w.expect(t)
	})
}

func TestAPodThatDoesNotEndIsNotWaitedForForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memoryBelow("300"))
		w.add(using("stuck", 0, v1.ResourceMemory, ""), 900)
		w.stuck["stuck"] = true
		before := time.Now()
		w.finish(t)
		if took := time.Since(before); took != patience {
			t.Errorf("it was waited for %v", took)
		}
	})
}

// bell is an alarm that a test rings.
type bell struct {
	ring  chan struct{}
	marks []cgroup.Mark
}

func (b *bell) Set(marks []cgroup.Mark) error { b.marks = marks; return nil }

func (b *bell) Run(ctx context.Context, ring func()) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.ring:
			ring()
		}
	}
}

func TestRunLooksRarelyAndAtOnceWhenRung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{Thresholds: []Threshold{{Signal: PIDAvailable, Least: bytes("1")}, {Signal: MemoryAvailable, Least: bytes("100"), Grace: time.Hour}}, Transition: time.Minute})
		alarm := &bell{ring: make(chan struct{})}
		w.deps.Alarm = alarm
		w.add(using("p", 0, v1.ResourceMemory, ""), 950) // met, in its grace: no reason to look often
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.looks.Load(); n < 6 || n > 7 {
			t.Errorf("in a minute it looked %d times", n)
		}
		if diff := cmp.Diff([]cgroup.Mark{{Bytes: 907}}, alarm.marks); diff != "" {
			t.Error(diff)
		}
		before := w.looks.Load()
		time.Sleep(3 * time.Second)
		alarm.ring <- struct{}{}
		time.Sleep(2 * pause)
		synctest.Wait()
		if n := w.looks.Load() - before; n != 1 {
			t.Errorf("when the alarm rang it looked %d times", n)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestTroubleIsNoReasonToEvict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memoryBelow("300"))
		w.add(using("p", 0, v1.ResourceMemory, ""), 900)
		w.broken = errors.New("no such file")
		if wait := w.look(t.Context()); wait != period || len(w.log) > 0 {
			t.Errorf("without figures it did %s, next look in %v", strings.Join(w.log, ", "), wait)
		}
	})
}
