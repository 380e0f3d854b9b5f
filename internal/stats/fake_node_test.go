package stats

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/pod"
)

// fakeNode is a node made of files. Every cgroup contains this process.
type fakeNode struct {
	t         testing.TB
	hierarchy cgroup.Hierarchy
	clock     *clocktesting.FakeClock
	pods      []pod.Observed
	volumes   map[types.UID][]pod.MeasurableVolume
	runtime   *fakeRuntime
	rootDir   string
	logs      string
}

// fakeRuntime is a container runtime that counts the calls of PodSandboxStatus.
type fakeRuntime struct {
	layers map[string]uint64 // container id → bytes
	mount  string
	calls  int

	pods        []*runtimeapi.PodSandboxStats
	metrics     []*runtimeapi.PodSandboxMetrics
	descriptors []*runtimeapi.MetricDescriptor
	err         error // of the three
}

func (r *fakeRuntime) ListPodSandboxStats(context.Context, *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return r.pods, r.err
}

func (r *fakeRuntime) ListPodSandboxMetrics(context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return r.metrics, r.err
}

func (r *fakeRuntime) ListMetricDescriptors(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return r.descriptors, r.err
}

func (r *fakeRuntime) ListContainerStats(context.Context, *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	var all []*runtimeapi.ContainerStats
	for id, bytes := range r.layers {
		all = append(all, &runtimeapi.ContainerStats{
			Attributes: &runtimeapi.ContainerAttributes{Id: id},
			WritableLayer: &runtimeapi.FilesystemUsage{
				Timestamp: 7, FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: r.mount},
				UsedBytes: &runtimeapi.UInt64Value{Value: bytes}, InodesUsed: &runtimeapi.UInt64Value{Value: 3},
			},
		})
	}
	return all, nil
}

func (r *fakeRuntime) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{{
		FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/no/such/dir"}, UsedBytes: &runtimeapi.UInt64Value{Value: 4096},
	}}}, nil
}

func (r *fakeRuntime) PodSandboxStatus(_ context.Context, id string, _ bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	r.calls++
	return &runtimeapi.PodSandboxStatusResponse{Info: map[string]string{"info": `{"pid": 1, "image": "pause:1"}`}}, nil
}

// began is when everything on the node was created.
var began = time.Unix(1_700_000_000, 0)

func newFakeNode(t testing.TB, version int) *fakeNode {
	t.Helper()
	w := &fakeNode{
		t: t, clock: clocktesting.NewFakeClock(began.Add(100 * time.Second)),
		volumes: map[types.UID][]pod.MeasurableVolume{}, rootDir: t.TempDir(), logs: t.TempDir(),
	}
	w.runtime = &fakeRuntime{layers: map[string]uint64{}, mount: w.rootDir}
	top := t.TempDir()
	w.hierarchy = cgroup.Hierarchy{Version: version, Mounts: map[string]string{"": top}}
	if version == 1 {
		w.hierarchy.Mounts = map[string]string{}
		for _, controller := range []string{"blkio", "cpu", "cpuacct", "memory", "pids"} {
			w.hierarchy.Mounts[controller] = filepath.Join(top, controller)
		}
	}
	w.group("/", 50)
	w.group("/kubepods", 40)
	w.group("/kubepods/burstable", 20)
	w.group("/kubepods/besteffort", 10)
	return w
}

// group makes a cgroup that has used so many seconds of CPU time.
func (w *fakeNode) group(path string, seconds int) {
	files := v2Files
	if w.hierarchy.Version == 1 {
		files = v1Files
	}
	for name, content := range files {
		controller, file, _ := strings.Cut(name, "/")
		if w.hierarchy.Version == 2 {
			controller, file = "", name
		}
		content = strings.ReplaceAll(content, "PID", strconv.Itoa(os.Getpid()))
		content = strings.ReplaceAll(content, "SECONDS", strconv.Itoa(seconds))
		w.write(w.hierarchy.Dir(controller, path), file, content)
	}
}

// set writes one file of a cgroup.
func (w *fakeNode) set(path, controller, file, content string) {
	w.write(w.hierarchy.Dir(controller, path), file, content+"\n")
}

func (w *fakeNode) write(dir, file, content string) {
	w.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// addPod makes a pod of one container that uses one second of CPU time in ten.
func (w *fakeNode) addPod(name string) pod.Observed {
	uid := "uid-" + name
	o := pod.Observed{
		Ref:        pod.Ref{Namespace: "ns", Name: name, UID: types.UID(uid)},
		Sandboxes:  []pod.Sandbox{{ID: "sandbox-" + name, CreatedAt: began, Ready: true}},
		Containers: []pod.Container{{ID: "container-" + name, Name: "c", State: pod.Running, CreatedAt: began, Image: "image:1"}},
	}
	path := "/kubepods/burstable/pod" + uid
	w.group(path, 11)
	w.group(path+"/sandbox-"+name, 1)
	w.group(path+"/container-"+name, 10)
	w.pods = append(w.pods, o)
	return o
}

func (w *fakeNode) stats(edit func(*Config, *Deps)) *Stats {
	w.t.Helper()
	tree, err := cgroup.New(
		cgroup.Config{Driver: cgroup.Cgroupfs, Limits: cgroup.Limits{CFSPeriod: 100 * time.Millisecond}},
		cgroup.Deps{Hierarchy: w.hierarchy, Clock: w.clock, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := Config{NodeName: "node-1", RootDir: w.rootDir, PodLogsDir: w.logs, VolumePeriod: time.Minute, PSI: true,
		Machine: Machine{CPUs: 2, Memory: 1 << 40, Swap: 1 << 30, MaxPIDs: 1000, BootID: `a"b`}}
	deps := Deps{Cgroups: tree, Runtime: w.runtime, Pods: func() []pod.Observed { return w.pods },
		Volumes: func(uid types.UID) []pod.MeasurableVolume { return w.volumes[uid] }, Clock: w.clock, Log: slog.New(slog.DiscardHandler)}
	if edit != nil {
		edit(&cfg, &deps)
	}
	s, err := New(cfg, deps)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *fakeNode) addPods(n int) {
	for i := range n {
		w.addPod(fmt.Sprintf("pod-%03d", i))
	}
}

var v1Files = map[string]string{
	"cpuacct/cpuacct.usage":              "SECONDS000000000\n",
	"cpuacct/cpuacct.stat":               "user 700\nsystem 300\n",
	"cpu/cpu.stat":                       "nr_periods 9\nnr_throttled 4\nthrottled_time 5000000000\nnr_bursts 2\nburst_time 1000000000\n",
	"cpu/cpu.shares":                     "512\n",
	"cpu/cpu.cfs_period_us":              "100000\n",
	"cpu/cpu.cfs_quota_us":               "-1\n",
	"memory/memory.usage_in_bytes":       "1000000\n",
	"memory/memory.max_usage_in_bytes":   "2000000\n",
	"memory/memory.limit_in_bytes":       "9223372036854771712\n",
	"memory/memory.memsw.limit_in_bytes": "9223372036854771712\n",
	"memory/memory.soft_limit_in_bytes":  "9223372036854771712\n",
	"memory/memory.kmem.usage_in_bytes":  "3000\n",
	"memory/memory.failcnt":              "6\n",
	"memory/memory.oom_control":          "oom_kill_disable 0\nunder_oom 0\noom_kill 8\n",
	"memory/memory.stat": "cache 1\nrss 2\npgfault 3\npgmajfault 4\ninactive_file 5\n" +
		"total_cache 400000\ntotal_rss 500000\ntotal_swap 70\ntotal_mapped_file 80\ntotal_pgfault 90\ntotal_pgmajfault 11\n" +
		"total_inactive_file 300000\ntotal_active_file 100000\ntotal_dirty 12\ntotal_writeback 13\n" +
		"total_workingset_refault_anon 14\ntotal_workingset_refault_file 15\n",
	"memory/cgroup.procs": "PID\n",
	"pids/pids.current":   "21\n",
	"pids/pids.max":       "max\n",
	"blkio/blkio.throttle.io_service_bytes_recursive": "4095:7 Read 4096\n4095:7 Write 8192\n4095:7 Sync 12288\n4095:7 Async 0\n4095:7 Discard 0\n4095:7 Total 12288\nTotal 12288\n",
	"blkio/blkio.throttle.io_serviced_recursive":      "4095:7 Read 1\n4095:7 Write 2\n4095:7 Sync 3\n4095:7 Async 0\n4095:7 Discard 0\n4095:7 Total 3\nTotal 3\n",
}

var v2Files = map[string]string{
	"cpu.stat": "usage_usec SECONDS000000\nuser_usec 7000000\nsystem_usec 3000000\nnr_periods 9\nnr_throttled 4\n" +
		"throttled_usec 5000000\nnr_bursts 2\nburst_usec 1000000\n",
	"cpu.weight":          "20\n",
	"cpu.max":             "max 100000\n",
	"memory.current":      "1000000\n",
	"memory.peak":         "2000000\n",
	"memory.max":          "max\n",
	"memory.min":          "0\n",
	"memory.swap.max":     "max\n",
	"memory.swap.current": "70\n",
	"memory.events":       "low 0\nhigh 5\nmax 6\noom 0\noom_kill 8\noom_group_kill 0\n",
	"memory.stat": "anon 500000\nfile 400000\nkernel 3000\nfile_mapped 80\nfile_dirty 12\nfile_writeback 13\n" +
		"inactive_file 300000\nactive_file 100000\npgfault 90\npgmajfault 11\npgscan 16\npgsteal 17\n" +
		"workingset_refault_anon 14\nworkingset_refault_file 15\n",
	"cpu.pressure":    "some avg10=1.50 avg60=0.50 avg300=0.10 total=3000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
	"memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=10\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n",
	"io.pressure":     "some avg10=0.00 avg60=0.00 avg300=0.00 total=20\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=6\n",
	"cgroup.procs":    "PID\n",
	"io.stat":         "4095:8 \n4095:7 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=5 dios=6 cost.usage=1500000 cost.wait=0\n",
	"pids.current":    "21\n",
	"pids.max":        "max\n",
}
