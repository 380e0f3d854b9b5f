package path

import (
	"context"
	"fmt"
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
	"swiftlet/test/fakecri"
)

const (
	// callTakes is how long the runtime takes for a call.
	callTakes = time.Millisecond
	// soon is time enough for all that needs no waiting, and less than any wait.
	soon = 150 * time.Millisecond
)

// world is a node: its runtime, what is wanted of it, and the agent of the day.
type world struct {
	t       *testing.T
	root    string
	runtime *fakecri.Server
	wishes  *wishes
	events  *events
	cgroups *cgroups
	agent   *agent

	mu sync.Mutex
	// stubborn containers use up the time they are given to stop.
	stubborn map[string]bool
	// exits are the containers that end as soon as they start, with their exit codes.
	exits map[string]int32
	// sick containers fail their probes.
	sick map[string]bool
	// classes are the runtime classes that there are.
	classes map[string]bool
	// rejects are the pods that are not admitted, with the reason.
	rejects map[string]string
	crash   *crash
}

// inWorld runs a test on a node of its own, and on a time of its own.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, root: t.TempDir(), wishes: newWishes(), events: &events{},
			cgroups:  &cgroups{pods: map[types.UID]int64{}},
			stubborn: map[string]bool{}, exits: map[string]int32{}, sick: map[string]bool{}, classes: map[string]bool{}, rejects: map[string]string{},
			runtime: fakecri.Start(t, fakecri.InMemory(), fakecri.WithImages("app:1")),
		}
		w.runtime.Stand(w.between)
		w.runtime.OnStart(w.onStart)
		w.runtime.OnExec(w.onExec)
		w.start()
		t.Cleanup(w.stop)
		w.pass(90 * time.Second) // the first relists are over, and the next is half a minute away
		w.runtime.ForgetCalls()
		test(w)
	})
}

// start begins a new life of the agent.
func (w *world) start() {
	w.t.Helper()
	a, err := newAgent(w)
	if err != nil {
		w.t.Fatal(err)
	}
	w.agent = a
}

// stop ends the agent's life; pods stay as they are.
func (w *world) stop() {
	w.agent.die()
	w.agent.parts.Wait()
}

// pass lets time pass, and then what that sets off.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// settle lets happen what needs no waiting.
func (w *world) settle() { w.pass(soon) }

// between makes calls take their time, and the agent die where it is to.
func (w *world) between(ctx context.Context, call fakecri.Call, act func() (any, error)) (any, error) {
	time.Sleep(callTakes)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if stop, ok := call.Request.(*runtimeapi.StopContainerRequest); ok && w.is(w.stubborn, w.containerName(stop.ContainerId)) {
		select {
		case <-time.After(time.Duration(stop.Timeout) * time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	w.mu.Lock()
	crash := w.crash
	w.mu.Unlock()
	if crash != nil {
		return crash.meet(ctx, w, act)
	}
	return act()
}

// admit rejects the pods that the script names.
func (w *world) admit(p *v1.Pod, _ []*v1.Pod) *pod.Rejection {
	w.mu.Lock()
	defer w.mu.Unlock()
	if reason, rejects := w.rejects[p.Name]; rejects {
		return pod.Reject(reason, "no room")
	}
	return nil
}

// handler knows a pod's runtime if there is its class.
func (w *world) handler(p *v1.Pod) (runtime.Handler, error) {
	if name := p.Spec.RuntimeClassName; name != nil && !w.is(w.classes, *name) {
		return runtime.Handler{}, fmt.Errorf("runtime class %q not found", *name)
	}
	return runtime.Handler{}, nil
}

func (w *world) is(set map[string]bool, name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return set[name]
}

func (w *world) onStart(c *runtimeapi.ContainerStatus) (int32, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	code, exits := w.exits[c.Metadata.Name]
	return code, exits
}

func (w *world) onExec(r *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	if w.is(w.sick, w.containerName(r.ContainerId)) {
		return &runtimeapi.ExecSyncResponse{ExitCode: 1, Stdout: []byte("sick")}, nil
	}
	return &runtimeapi.ExecSyncResponse{}, nil
}

// container is the newest instance of the named container.
func (w *world) container(name string) *runtimeapi.ContainerStatus {
	all := w.runtime.Containers()
	for _, c := range slices.Backward(all) {
		if c.Metadata.Name == name {
			return c
		}
	}
	return nil
}

func (w *world) containerName(id string) string {
	for _, c := range w.runtime.Containers() {
		if c.Id == id {
			return c.Metadata.Name
		}
	}
	return id
}

// events keeps what users are told.
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

// take returns the events of these reasons, or all, since it was last asked.
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
