package simulate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/test/fakeapi"
	"swiftlet/test/fakecri"
	"swiftlet/test/fakekernel"
)

const nodeName = "192.0.2.7" // an address, so that no name is looked up

// node is the simulated machine: its disk, runtime, kernel and API server, and the current run of the agent.
type node struct {
	t    *testing.T
	base string // directory of everything on disk
	*trace
	*dice
	profile profile
	runtime *fakecri.Server
	api     *fakeapi.Server
	kernel  *fakekernel.Kernel
	world   *world

	mu       sync.Mutex
	current  *run
	faults   bool // faults are injected
	outage   bool // the API server is unreachable
	injected int
	kills    int
	stopped  bool // no new run is started
	crash    crash
	runs     sync.WaitGroup
}

// dirs of the node. live is moved away while a killed agent ends, so that it cannot write any more.
func (n *node) live() string           { return filepath.Join(n.base, "live") }
func (n *node) root() string           { return filepath.Join(n.live(), "kubelet") }
func (n *node) manifests() string      { return filepath.Join(n.live(), "manifests") }
func (n *node) podLogs() string        { return filepath.Join(n.live(), "log", "pods") }
func (n *node) saved() string          { return filepath.Join(n.base, "saved") }
func (n *node) certificates() string   { return filepath.Join(n.live(), "pki") }
func (n *node) inLive(p string) string { return filepath.Join(n.live(), p) }

func newNode(t *testing.T, seed uint64, base string) *node {
	n := &node{
		t: t, base: base, trace: &trace{start: time.Now()}, dice: newDice(seed),
		api: fakeapi.New(), kernel: fakekernel.New(), faults: true,
	}
	n.profile = newProfile(n.roll("profile"))
	n.world = newWorld(n)
	for _, dir := range []string{n.root(), n.manifests(), n.podLogs(), n.certificates()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeConfiguration(n); err != nil {
		t.Fatal(err)
	}
	n.runtime = fakecri.Start(t, fakecri.InMemory(), fakecri.WithImages("app:1", "app:2", "registry.example/pause"))
	n.runtime.Publish("registry.example/published:latest", 1<<20)
	n.runtime.SetInterceptor(n.interceptRuntime)
	n.runtime.OnStart(n.world.started)
	n.runtime.OnExec(n.world.exec)
	n.api.SetInterceptor(n.interceptAPI)
	n.addObjects()
	return n
}

// addObjects adds what every cluster has.
func (n *node) addObjects() {
	must := func(err error) {
		if err != nil {
			n.t.Fatal(err)
		}
	}
	must(fakeapi.Edit(n.api, "default", "default", func(*v1.ServiceAccount) error { return nil }))
	for i := range 2 {
		must(fakeapi.Edit(n.api, "default", fmt.Sprintf("config%d", i), func(c *v1.ConfigMap) error {
			c.Data = map[string]string{"key": "0"}
			return nil
		}))
		must(fakeapi.Edit(n.api, "default", fmt.Sprintf("secret%d", i), func(s *v1.Secret) error {
			s.Data = map[string][]byte{"key": []byte("0")}
			return nil
		}))
	}
}

// start starts a run of the agent.
func (n *node) start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return
	}
	r := newRun(n)
	n.current = r
	n.add("agent starts")
	n.world.agentStarted()
	n.runs.Go(func() {
		watch := context.AfterFunc(r.ctx, func() { n.awaitEnd(r) })
		err := r.serve()
		watch()
		close(r.ended)
		n.ended(r, err)
	})
}

// awaitEnd checks that the agent ends after it was asked to. It completes calls that create something, up
// to their deadline: four minutes for a sandbox.
func (n *node) awaitEnd(r *run) {
	select {
	case <-r.ended:
	case <-time.After(5 * time.Minute):
		stacks := make([]byte, 1<<20)
		stacks = stacks[:goruntime.Stack(stacks, true)]
		n.add("goroutines:\n%s", stacks)
		n.world.violate("agent does not end")
	}
}

// ended starts the next run some time after the last one was killed or failed.
func (n *node) ended(r *run, err error) {
	n.add("agent ended: %v", err)
	killed := r.restoreDisk()
	if err != nil && !killed && r.ctx.Err() == nil {
		n.add("agent failed: %v", err)
		n.world.violate("agent ended: %v", err)
	}
	n.mu.Lock()
	n.current = nil
	stopped := n.stopped
	n.mu.Unlock()
	if stopped {
		return
	}
	time.Sleep(between(n.roll("restart"), 10*time.Millisecond, n.profile.longestDowntime))
	n.start()
}

// stop ends the agent for good, as systemd would.
func (n *node) stop() {
	n.mu.Lock()
	n.stopped = true
	r := n.current
	n.mu.Unlock()
	if r != nil {
		r.cancel()
	}
	n.runs.Wait()
}

// withDisk calls f while no run of the agent starts or dies.
func (n *node) withDisk(f func(live string) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	live := n.live()
	if n.current != nil && n.current.diskSaved() {
		live = n.saved()
	}
	return f(live)
}

func (n *node) countFault() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.injected++
}

func (n *node) endFaults() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults, n.outage = false, false
	n.runtime.Events.Release()
	n.runtime.Events.Drop(0)
}

// awaitAgent waits until the agent runs: the last fault may have been a kill, with a long downtime after it.
func (n *node) awaitAgent() {
	for !n.isRunning() {
		time.Sleep(time.Second)
	}
}

func (n *node) isRunning() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current != nil && n.current.ctx.Err() == nil
}

// podDir is the directory of a pod's volumes.
func (n *node) podDir(uid types.UID) string { return filepath.Join(n.root(), "pods", string(uid)) }
