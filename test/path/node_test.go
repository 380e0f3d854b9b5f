package path

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
	"swiftlet/internal/why"
	"swiftlet/test/fakecri"
)

const (
	// callDuration is how long a call to the runtime takes.
	callDuration = time.Millisecond
	// settleTime is longer than everything without a delay takes, and shorter than any delay.
	settleTime = 150 * time.Millisecond
)

// testNode is a node: its runtime, its pods, and the current run of the agent.
type testNode struct {
	t       *testing.T
	root    string
	runtime *fakecri.Server
	store   *podStore
	events  *events
	cgroups *cgroups
	clock   *countingClock
	agent   *agent

	mu sync.Mutex
	// slowToStop containers use up their grace period.
	slowToStop map[string]bool
	// exits are the containers that exit whenever they start, with their exit codes.
	exits map[string]int32
	// unhealthy containers fail their probes and hooks.
	unhealthy map[string]bool
	// classes are the existing runtime classes.
	classes map[string]bool
	// rejects are the pods that admission rejects, with the reason.
	rejects map[string]string
	// awaited are the devices that pods wait for.
	awaited map[string]string
	// prepared counts the attempts to prepare the devices of pods.
	prepared map[string]int
	crash    *crash
	// isOff reports whether the power is off; may be nil.
	isOff func() bool
	// faults are those outside the runtime.
	faults faults
	// logTo receives the agent's log; nil: see log.
	logTo io.Writer
}

// onTestNode runs a test on a new node, on synctest's time.
func onTestNode(t *testing.T, test func(w *testNode)) {
	t.Helper()
	onTestNodeIn(t, t.TempDir(), nil, test)
}

// onTestNodeIn runs a test on a new node with this root directory. prepare, if set, is called before the
// agent starts.
func onTestNodeIn(t *testing.T, root string, prepare, test func(w *testNode)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &testNode{
			t: t, root: root, store: newPodStore(), events: &events{},
			cgroups:    &cgroups{pods: map[types.UID]int64{}},
			clock:      &countingClock{},
			slowToStop: map[string]bool{}, exits: map[string]int32{}, unhealthy: map[string]bool{}, classes: map[string]bool{}, rejects: map[string]string{},
			awaited: map[string]string{}, prepared: map[string]int{},
			runtime: fakecri.Start(t, fakecri.InMemory(), fakecri.WithImages("app:1")),
		}
		w.runtime.SetInterceptor(w.interceptCall)
		w.runtime.OnStart(w.onStart)
		w.runtime.OnExec(w.onExec)
		if prepare != nil {
			prepare(w)
		}
		w.start()
		t.Cleanup(w.stop)
		w.pass(90 * time.Second) // after the first relists, half a minute before the next
		w.runtime.ResetCalls()
		test(w)
	})
}

// start starts a new run of the agent.
func (w *testNode) start() {
	w.t.Helper()
	a, err := newAgent(w)
	if err != nil {
		w.t.Fatal(err)
	}
	w.agent = a
}

// stop kills the agent. Pods do not change.
func (w *testNode) stop() {
	w.agent.kill()
	w.agent.parts.Wait()
}

// pass lets time pass, and waits until its effects are complete.
func (w *testNode) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// settle waits until everything without a delay has happened.
func (w *testNode) settle() { w.pass(settleTime) }

// interceptCall delays calls, and kills the agent where a crash is set.
func (w *testNode) interceptCall(ctx context.Context, call fakecri.Call, act func() (any, error)) (any, error) {
	time.Sleep(callDuration)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if stop, ok := call.Request.(*runtimeapi.StopContainerRequest); ok && w.isSet(w.slowToStop, w.containerName(stop.ContainerId)) {
		select {
		case <-time.After(time.Duration(stop.Timeout) * time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if w.isOff != nil && w.isOff() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	w.mu.Lock()
	crash := w.crash
	w.mu.Unlock()
	if crash != nil {
		return crash.intercept(ctx, w, act)
	}
	return act()
}

// admit rejects the pods of rejects.
func (w *testNode) admit(p *v1.Pod, _ []*v1.Pod) *pod.Rejection {
	w.mu.Lock()
	defer w.mu.Unlock()
	if reason, rejects := w.rejects[p.Name]; rejects {
		return pod.Reject(reason, "no room")
	}
	return nil
}

// handler returns the runtime handler of a pod, if its runtime class exists.
func (w *testNode) handler(p *v1.Pod) (runtime.Handler, error) {
	if name := p.Spec.RuntimeClassName; name != nil && !w.isSet(w.classes, *name) {
		return runtime.Handler{}, why.Because(why.RuntimeClassNotFound, *name, fmt.Errorf("runtime class %q not found", *name))
	}
	return runtime.Handler{}, nil
}

func (w *testNode) isSet(set map[string]bool, name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return set[name]
}

func (w *testNode) onStart(c *runtimeapi.ContainerStatus) (int32, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	code, exits := w.exits[c.Metadata.Name]
	return code, exits
}

func (w *testNode) onExec(r *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	if w.isSet(w.unhealthy, w.containerName(r.ContainerId)) {
		return &runtimeapi.ExecSyncResponse{ExitCode: 1, Stdout: []byte("sick")}, nil
	}
	return &runtimeapi.ExecSyncResponse{}, nil
}

// container returns the newest container of that name.
func (w *testNode) container(name string) *runtimeapi.ContainerStatus {
	all := w.runtime.Containers()
	for _, c := range slices.Backward(all) {
		if c.Metadata.Name == name {
			return c
		}
	}
	return nil
}

func (w *testNode) containerName(id string) string {
	for _, c := range w.runtime.Containers() {
		if c.Id == id {
			return c.Metadata.Name
		}
	}
	return id
}

// events records events.
type events struct {
	mu  sync.Mutex
	all []event
}

type event struct{ kind, reason, text string }

func (e *events) Eventf(o apiruntime.Object, kind, reason, format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event{kind, reason, fmt.Sprintf("%s %s: %s", o.(*v1.ObjectReference).Name, reason, fmt.Sprintf(format, args...))})
}

// count is the number of events since the last take.
func (e *events) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.all)
}

// take returns the events with these reasons, or all, since the last call.
func (e *events) take(reasons ...string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var texts []string
	for _, one := range e.all {
		if len(reasons) == 0 || slices.Contains(reasons, one.reason) {
			texts = append(texts, one.text)
		}
	}
	e.all = nil
	return texts
}
