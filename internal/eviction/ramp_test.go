package eviction

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/pod"
	"swiftlet/internal/stats"
)

// hogRate makes this program a pod's process that allocates so many MiB in a second, for ever.
const hogRate = "SWIFTLET_TEST_HOG"

func TestMain(m *testing.M) {
	if rate, err := strconv.Atoi(os.Getenv(hogRate)); err == nil {
		allocate(rate)
	}
	os.Exit(m.Run())
}

// allocate allocates memory in steps of ten milliseconds, or as fast as it can.
func allocate(rate int) {
	var beingReclaimed [][]byte
	for began := time.Now(); ; {
		for float64(len(beingReclaimed)) < time.Since(began).Seconds()*float64(rate) {
			piece := make([]byte, 1<<20)
			for i := 0; i < len(piece); i += 4096 {
				piece[i] = 1
			}
			beingReclaimed = append(beingReclaimed, piece)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Of twenty pods that allocate memory at various rates, at least nineteen are evicted before
// the OOM killer acts. The kernel, its cgroups and its memory notifications are real; a pod is one
// process in its groups. SWIFTLET_RAMPS says how many there are, of which one in
// twenty may be killed.
func TestKernelRamps(t *testing.T) {
	if text, err := os.ReadFile("/proc/cpuinfo"); err != nil || !strings.Contains(string(text), "User Mode Linux") {
		t.Skip("takes all of a machine's memory: go test -exec 'bin/uml -memory 400' -run Kernel")
	}
	hierarchy, err := cgroup.Detect()
	if err != nil {
		t.Fatal(err)
	}
	ramps := 3
	if text := os.Getenv("SWIFTLET_RAMPS"); text != "" {
		if ramps, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	r := newRamps(t, hierarchy, totalMemory(t))
	survived := 0
	for i := range ramps {
		rate := 50 << (2 * i % 5) // 50 to 800 MiB/s, as far as the machine is that fast
		before := oomKills(t)
		took := r.ramp(t, i, rate)
		if kills := oomKills(t) - before; kills > 0 {
			t.Logf("ramp %d, %d MiB/s: the kernel killed %d", i, rate, kills)
			continue
		}
		t.Logf("ramp %d, %d MiB/s: evicted after %v, with %d MiB left", i, rate, took.Round(time.Millisecond), r.left>>20)
		survived++
	}
	t.Logf("%d of %d ramps ended in eviction", survived, ramps)
	if survived < ramps-ramps/20 {
		t.Errorf("%d of %d ramps ended in eviction", survived, ramps)
	}
}

// ramps is the node on which they run.
type ramps struct {
	tree    *cgroup.Tree
	evictor *Evictor
	stats   *stats.Stats

	mu       sync.Mutex
	pod      *v1.Pod
	hog      *exec.Cmd
	evicted  chan struct{}
	finished chan struct{}
	left     int64
}

func newRamps(t *testing.T, hierarchy cgroup.Hierarchy, memory int64) *ramps {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	r := &ramps{}
	var err error
	r.tree, err = cgroup.New(cgroup.Config{Driver: cgroup.Cgroupfs, Root: "/", Limits: cgroup.Limits{CFSPeriod: 100 * time.Millisecond, PodPIDs: -1}},
		cgroup.Deps{Hierarchy: hierarchy, Clock: clock.RealClock{}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.tree.EnsureNode(v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI)}); err != nil {
		t.Fatal(err)
	}
	r.stats, err = stats.New(stats.Config{NodeName: "node", RootDir: t.TempDir(), PodLogsDir: t.TempDir(), PodsCgroup: r.tree.Kubepods(),
		Machine: stats.Machine{CPUs: 1, Memory: uint64(memory)}},
		stats.Deps{Cgroups: r.tree, Runtime: noRuntime{}, Pods: r.observed, Volumes: func(types.UID) []pod.MeasurableVolume { return nil }, Clock: clock.RealClock{}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	thresholds, err := Settings{Hard: map[string]string{"memory.available": "100Mi"}, Allocatable: true}.Thresholds()
	if err != nil {
		t.Fatal(err)
	}
	r.evictor, err = New(Config{Thresholds: thresholds, PressureTransitionPeriod: time.Second}, Deps{
		Stats: r.stats, Pods: r, Events: &fakeNode{}, Node: &v1.ObjectReference{}, MemoryNotifier: r.tree.NewMemoryNotifier(r.tree.Kubepods()), Clock: clock.RealClock{}, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.evictor.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return r
}

// ramp runs one hog until it is dead.
func (r *ramps) ramp(t *testing.T, i, rate int) time.Duration {
	t.Helper()
	p := podRequesting(fmt.Sprintf("hog-%d", i), 0, v1.ResourceMemory, "")
	if err := r.tree.EnsurePod(p); err != nil {
		t.Fatal(err)
	}
	group := filepath.Join(r.tree.PodDir(p, "memory"), "hog")
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(group)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	hog := exec.Command("/proc/self/exe")
	hog.Env = append(os.Environ(), fmt.Sprintf("%s=%d", hogRate, rate))
	hog.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	r.mu.Lock()
	r.pod, r.hog, r.evicted, r.finished = p, hog, make(chan struct{}), make(chan struct{})
	r.mu.Unlock()
	began := time.Now()
	if err := hog.Start(); err != nil {
		t.Fatal(err)
	}
	score := fmt.Sprintf("/proc/%d/oom_score_adj", hog.Process.Pid)
	if err := os.WriteFile(score, []byte("1000"), 0); err != nil { // as every such pod has
		t.Fatal(err)
	}
	canceled := make(chan struct{})
	go func() { hog.Wait(); close(canceled) }()
	select {
	case <-canceled:
	case <-time.After(2 * time.Minute):
		t.Fatalf("ramp %d: the pod is neither evicted nor killed", i)
	}
	took := time.Since(began)
	r.mu.Lock()
	r.pod = nil
	r.mu.Unlock()
	if err := r.tree.RemovePod(t.Context(), p.UID); err != nil {
		t.Fatal(err)
	}
	close(r.finished)
	return took
}

func (r *ramps) observed() []pod.Observed {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pod == nil {
		return nil
	}
	return []pod.Observed{{Ref: pod.RefOf(r.pod), Sandboxes: []pod.Sandbox{{ID: "s"}}, Containers: []pod.Container{{ID: "hog", Name: "c", State: pod.Running}}}}
}

func (r *ramps) Active() []*v1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pod == nil {
		return nil
	}
	return []*v1.Pod{r.pod}
}

func (r *ramps) Evict(types.UID, pod.Failure, *int64) bool {
	signals, _ := r.stats.Signals(context.Background())
	r.mu.Lock()
	defer r.mu.Unlock()
	if signals.Memory != nil {
		r.left = int64(signals.Memory.Available)
	}
	return r.hog.Process.Kill() == nil
}

func (r *ramps) Finished(types.UID) (<-chan struct{}, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.finished, r.pod != nil
}

// noRuntime reports nothing. The embedded methods are not called.
type noRuntime struct{ stats.Runtime }

func (noRuntime) ListContainerStats(context.Context, *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	return nil, nil
}

func (noRuntime) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{}, nil
}

func (noRuntime) PodSandboxStatus(context.Context, string, bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	return &runtimeapi.PodSandboxStatusResponse{}, nil
}

// oomKills is how many processes the OOM killer has killed.
func oomKills(t *testing.T) int64 { return number(t, "/proc/vmstat", "oom_kill") }

func totalMemory(t *testing.T) int64 { return number(t, "/proc/meminfo", "MemTotal:") << 10 }

func number(t *testing.T, file, key string) int64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); fields[0] == key {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("%s has no %s", file, key)
	return 0
}
