package path

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/admit"
	"swiftlet/internal/backoff"
	"swiftlet/internal/checkpoint"
	"swiftlet/internal/cri"
	"swiftlet/internal/desired"
	"swiftlet/internal/dns"
	"swiftlet/internal/image"
	"swiftlet/internal/kubeapi"
	"swiftlet/internal/observe"
	"swiftlet/internal/pod"
	"swiftlet/internal/podsync"
	"swiftlet/internal/probe"
	"swiftlet/internal/resource/allocation"
	"swiftlet/internal/runtime"
	"swiftlet/internal/status"
	"swiftlet/internal/syncloop"
	"swiftlet/internal/volume"
	"swiftlet/internal/volume/safepath"
	"swiftlet/internal/why"
	"swiftlet/internal/worker"
)

// agent is one run of the agent. Its memory is lost when it is killed.
type agent struct {
	client   *cri.Client
	store    *podStore
	killed   atomic.Bool
	isOff    func() bool // may be nil
	written  writes
	observer *observe.Observer
	workers  *worker.Pool
	status   *status.Publisher
	why      *why.Tracker
	cancel   context.CancelFunc
	parts    sync.WaitGroup
}

// gatedFields has restart rules on and all other gated fields off.
var gatedFields = pod.NewGatedFields(func(gate string) bool { return gate == "ContainerRestartRules" })

// longestBackoff is the reference kubelet's default.
const longestBackoff = 5 * time.Minute

// newAgent connects the packages as internal/agent does, and starts them.
func newAgent(w *testNode) (*agent, error) {
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: w.runtime.Endpoint(), Dial: w.runtime.Dial, RequestTimeout: 2 * time.Minute})
	if err != nil {
		return nil, err
	}
	a := &agent{client: client, store: w.store, isOff: w.isOff, why: why.New()}
	log := slog.New(slog.NewTextHandler(w.log(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	checkpoint.Clean(w.root, log)
	objects := kubeapi.NewLocal()
	objects.SetObjects(w.faults.configMaps, w.faults.secrets)
	rt, err1 := newRuntime(w, client, log, a.why)
	observer, err2 := observe.New(observe.Config{}, observe.Deps{Runtime: client, Clock: w.clock, Log: log})
	images, err3 := image.New(image.Config{Verify: verification(w.root)}, image.Deps{Images: client, Why: a.why, Credentials: w.credentials, Events: w.events, Clock: w.clock, Log: log})
	volumes, err4 := volume.New(volume.Config{RootDir: w.root}, volume.Deps{Objects: objects, Allocatable: allocatable, Plugins: w.plugins(log), Claims: w.claims(), Node: noNode, Why: a.why, Events: w.events, Clock: w.clock, Log: log})
	probes, err5 := probe.New(probe.Config{File: filepath.Join(w.root, probe.ResultsFile)}, probe.Deps{Checker: probe.NewChecks(client), Why: a.why, Events: w.events, Clock: w.clock, Log: log, Random: func() float64 { return 0 }, Cores: 2})
	wanted, err6 := desired.New(desired.Config{Sources: []pod.Source{pod.SourceFile, pod.SourceAPI}, Fields: gatedFields}, desired.Deps{Clock: w.clock})
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return nil, err
	}
	allocated, err1 := allocation.Open(filepath.Join(w.root, allocation.Allocated))
	actual, err2 := allocation.Open(filepath.Join(w.root, allocation.Actuated))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	allocator, err := allocation.New(allocation.Deps{Allocated: allocated, PodLevel: true, Check: checkResize, Events: w.events, Clock: w.clock})
	if err != nil {
		return nil, err
	}
	publisher, err := status.New(status.Config{}, status.Deps{Client: a, Mirror: wanted.MirrorOf, Clock: w.clock, Jitter: func() float64 { return 0 }, Log: log})
	if err != nil {
		return nil, err
	}
	steps, err := podsync.New(podsync.Config{RuntimeName: "fake", CrashBackoff: backoff.Backoff{First: 10 * time.Second, Longest: longestBackoff}, MaxDeadPerContainer: 1, MaxDead: -1, Fields: gatedFields}, podsync.Deps{
		Runtime: rt, Logs: rt, Observer: observer, Images: images, Volumes: faultyVolumes{volumes, w}, Cgroups: faultyCgroups{w.cgroups, w}, Status: publisher,
		Objects: objects, Sources: noServices{objects}, Probes: probes, Resources: devices{w},
		Resizing: podsync.Resizing{Allocated: allocated, Actual: actual, Usage: noMemoryUsage{}}, Removed: allocator.Forget,
		Node: podsync.Node{
			Handler: w.handler, Allocatable: allocatable,
			Network: func() error { return w.fault(func(f *faults) error { return f.network }) },
			HostIPs: func() []string { return []string{"192.0.2.1"} },
		},
		Why: a.why, Events: w.events, Clock: w.clock, Log: log,
	})
	if err != nil {
		return nil, err
	}
	pool, err := worker.New(worker.NewTable(), worker.Deps{NewSteps: func() worker.Steps { return steps.NewPod() }, Waits: func(p *v1.Pod) { a.why.Await(p, w.clock.Now()) }, Retries: a.why.NextTry, Clock: w.clock, Log: log})
	if err != nil {
		return nil, err
	}
	housekeeper, err1 := podsync.NewHousekeeper(podsync.HousekeeperDeps{
		Known:       func(uid types.UID) bool { _, is := wanted.Get(uid); return is || pool.Known(uid) },
		InRuntime:   func(uid types.UID) bool { _, is := observer.Get(uid); return is || observer.Unread(uid) },
		Directories: volumes, Cgroups: w.cgroups, Logs: rt, Log: log,
	})
	snapshots := make(chan pod.Snapshot)
	admission, err := admit.NewAdmission(admit.Deps{
		Check: w.admit, Allocator: allocator, Workers: pool, Desired: wanted.Get, Observed: observer.Get, Events: w.events, Log: log,
	})
	if err != nil {
		return nil, err
	}
	loop, err2 := syncloop.New(syncloop.Deps{
		Snapshots: snapshots, Desired: wanted, Observer: observer, Workers: pool, Admission: admission, Probed: probes.Changes(),
		Housekeep: func(ctx context.Context) { housekeeper.Notify(ctx) }, Clock: w.clock, Log: log,
	})
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	a.observer, a.workers, a.status = observer, pool, publisher
	a.run(w, observer.Run, volumes.Run, probes.Run, publisher.Run, pool.Run, loop.Run, housekeeper.Run,
		func(ctx context.Context) error { w.store.feed(ctx, snapshots); return nil })
	return a, nil
}

// verification is the default policy for pull credentials.
func verification(root string) image.Verification {
	return image.Verification{Dir: filepath.Join(root, "image_manager"), Policy: kubelet.NeverVerifyPreloadedImages}
}

// noNode is a node without labels.
func noNode() (*v1.Node, error) { return &v1.Node{}, nil }

func allocatable() v1.ResourceList { return v1.ResourceList{} }

func newRuntime(w *testNode, client *cri.Client, log *slog.Logger, steps *why.Tracker) (*runtime.Runtime, error) {
	resolver, err := dns.New(dns.Config{NoCluster: true}, dns.Deps{Events: w.events, Node: &v1.ObjectReference{}, Log: log})
	if err != nil {
		return nil, err
	}
	return runtime.New(runtime.Config{
		RootDir: w.root, PodLogsDir: filepath.Join(w.root, "logs"), ContainerLogsDir: filepath.Join(w.root, "links"), MemoryCapacity: 1 << 30,
	}, runtime.Deps{
		CRI: client, DNS: resolver, Why: steps, Events: w.events, Log: log, Clock: w.clock, Random: func() uint32 { return 7 },
		LogTail: func(string, int, int) ([]byte, error) { return nil, nil }, RemoveTree: safepath.RemoveAll,
	})
}

// run starts the parts, which run until the agent is killed.
func (a *agent) run(w *testNode, parts ...func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	for _, part := range parts {
		a.parts.Go(func() {
			if err := part(ctx); err != nil {
				w.t.Errorf("part of the agent failed: %v", err)
			}
		})
	}
}

// PatchStatus and DeletePod reach the API server until the agent is killed.
func (a *agent) PatchStatus(ctx context.Context, namespace, name string, patch []byte) (string, error) {
	if a.isDead() {
		return "", errors.New("dead")
	}
	a.written.patches.Add(1)
	a.written.bytes.Add(int64(len(patch)))
	return a.store.PatchStatus(ctx, namespace, name, patch)
}

func (a *agent) DeletePod(ctx context.Context, namespace, name string, uid types.UID) error {
	if a.isDead() {
		return errors.New("dead")
	}
	a.written.deletes.Add(1)
	return a.store.DeletePod(ctx, namespace, name, uid)
}

func (a *agent) isDead() bool { return a.killed.Load() || a.isOff != nil && a.isOff() }

// kill stops the agent like a crash: its calls reach neither the runtime nor the API server any more.
func (a *agent) kill() {
	a.killed.Store(true)
	_ = a.client.Close()
	a.cancel()
}

// noServices has no services, and is synced.
type noServices struct{ *kubeapi.Local }

func (noServices) Services(string) ([]*v1.Service, bool) { return nil, true }

// cgroups is a fake of the kernel's cgroups: the CPU request of each pod, in millicores.
type cgroups struct {
	mu   sync.Mutex
	pods map[types.UID]int64
}

func (c *cgroups) of(uid types.UID) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pods[uid]
}

func (c *cgroups) EnsurePod(p *v1.Pod) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
	c.pods[p.UID] = requests.Cpu().MilliValue()
	return nil
}

func (c *cgroups) PodParent(p *v1.Pod) string { return "/kubepods/pod" + string(p.UID) }

func (c *cgroups) RemovePod(_ context.Context, uid types.UID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pods, uid)
	return nil
}

func (c *cgroups) Pods() ([]types.UID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []types.UID
	for uid := range c.pods {
		all = append(all, uid)
	}
	return all, nil
}

// log is the output of the agent's log: nothing, unless the test is run with -v.
func (w *testNode) log() io.Writer {
	if w.logTo != nil {
		return w.logTo
	}
	if testing.Verbose() {
		return w.t.Output()
	}
	return io.Discard
}
