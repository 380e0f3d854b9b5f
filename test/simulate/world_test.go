package simulate

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/fakecri"
)

// key is a container of a pod, across restarts.
type key struct{ uid, container string }

// world has the containers' behaviour, and what they did.
type world struct {
	n *node

	mu         sync.Mutex
	behaviours map[string]*behaviour // by pod and container name
	names      map[string]string     // of containers and sandboxes, by ID: "pod/container#attempt"
	keys       map[string]key        // of containers, by ID
	starts     map[key]int
	causes     map[key]int // reasons to start again
	// agentStarts is how often the agent has started: each time, a static pod that had exceeded its
	// active deadline starts again, as TestStaticPodDeadline of test/e2e shows on the reference, too.
	agentStarts int
	deadlines   map[string]bool // names of pods with an active deadline
	// probeFailed are the pods of which a probe or a hook may have failed by a fault.
	probeFailed map[string]bool
	violations  []string
}

// behaviour is how a container behaves.
type behaviour struct {
	exits    int           // how many of its runs end; -1: all
	after    time.Duration // how long these last
	code     int32
	stubborn bool // uses up its grace period
	sick     bool // fails its probes
}

func newWorld(n *node) *world {
	return &world{
		n: n, behaviours: map[string]*behaviour{}, names: map[string]string{}, keys: map[string]key{},
		starts: map[key]int{}, causes: map[key]int{}, deadlines: map[string]bool{}, probeFailed: map[string]bool{},
	}
}

// violate records that something is not as it must be.
func (w *world) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.n.add("VIOLATION %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.violations) < 20 && !slices.Contains(w.violations, text) {
		w.violations = append(w.violations, text)
	}
}

// behaviour returns that of a container; the caller holds mu.
func (w *world) behaviour(pod, container string) *behaviour {
	name := strings.TrimSuffix(pod, "-"+nodeName) + "/" + container
	if w.behaviours[name] == nil {
		w.behaviours[name] = &behaviour{}
	}
	return w.behaviours[name]
}

// change changes the behaviour of a container.
func (w *world) change(pod, container string, edit func(*behaviour)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	edit(w.behaviour(pod, container))
}

// cause adds a reason for one more start of a container.
func (w *world) cause(k key, times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.causes[k] += times
}

// agentStarted is called when the agent starts.
func (w *world) agentStarted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.agentStarts++
}

// started is called when a container starts.
func (w *world) started(c *runtimeapi.ContainerStatus) (int32, bool) {
	k := podOf(c.Labels)
	w.mu.Lock()
	w.starts[k]++
	starts, causes := w.starts[k], w.causes[k]
	if name, static := strings.CutSuffix(c.Labels["io.kubernetes.pod.name"], "-"+nodeName); static && w.deadlines[name] {
		causes += w.agentStarts - 1
	}
	b := w.behaviour(c.Labels["io.kubernetes.pod.name"], k.container)
	exits, after, code := b.exits != 0, b.after, b.code
	if b.exits > 0 {
		b.exits--
	}
	w.mu.Unlock()
	if starts > 1+causes {
		w.violate("%s of %s is started for the %dth time, with %d causes", k.container, c.Labels["io.kubernetes.pod.name"], starts, causes)
	}
	if exits {
		time.AfterFunc(after, func() { w.exit(c.Id, code) })
	}
	return 0, false
}

// exit ends a container, which may then be started again.
func (w *world) exit(id string, code int32) {
	w.mu.Lock()
	k, name := w.keys[id], w.names[id]
	w.mu.Unlock()
	w.cause(k, 1) // before the agent can see it
	if !w.n.runtime.Exit(id, code) {
		w.cause(k, -1)
		return
	}
	w.n.add("world: %s exits %d", name, code)
}

// exec answers probes and hooks.
func (w *world) exec(r *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	if r.Cmd[0] != "probe" {
		return &runtimeapi.ExecSyncResponse{}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	pod, container, _ := splitName(w.names[r.ContainerId])
	if w.behaviour(pod, container).sick {
		return &runtimeapi.ExecSyncResponse{ExitCode: 1, Stdout: []byte("sick")}, nil
	}
	return &runtimeapi.ExecSyncResponse{}, nil
}

func splitName(name string) (pod, container string, ok bool) {
	for i := range name {
		if name[i] != '/' {
			continue
		}
		for j := i; j < len(name); j++ {
			if name[j] == '#' {
				return name[:i], name[i+1 : j], true
			}
		}
	}
	return name, "", false
}

// subject names the object of a call, independent of IDs.
func (w *world) subject(call fakecri.Call) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch r := call.Request.(type) {
	case *runtimeapi.RunPodSandboxRequest:
		return fmt.Sprintf("%s#%d", r.Config.Metadata.Name, r.Config.Metadata.Attempt)
	case *runtimeapi.CreateContainerRequest:
		return fmt.Sprintf("%s/%s#%d", w.names[r.PodSandboxId], r.Config.Metadata.Name, r.Config.Metadata.Attempt)
	case interface{ GetContainerId() string }:
		return w.names[r.GetContainerId()]
	case interface{ GetPodSandboxId() string }:
		return w.names[r.GetPodSandboxId()]
	case *runtimeapi.PullImageRequest:
		return r.Image.Image
	}
	return ""
}

// stopTime is how long a container takes to stop.
func (w *world) stopTime(call fakecri.Call) time.Duration {
	stop, ok := call.Request.(*runtimeapi.StopContainerRequest)
	if !ok {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	pod, container, _ := splitName(w.names[stop.ContainerId])
	if w.behaviour(pod, container).stubborn {
		return time.Duration(stop.Timeout) * time.Second
	}
	return 0
}

// faultAt notes a fault that may make the agent restart a container: that of a probe or a hook.
func (w *world) faultAt(call fakecri.Call) {
	if r, ok := call.Request.(*runtimeapi.ExecSyncRequest); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.causes[w.keys[r.ContainerId]]++
		w.probeFailed[w.keys[r.ContainerId].uid] = true
	}
}

// before checks that a call does no harm.
func (w *world) before(call fakecri.Call) {
	r, ok := call.Request.(*runtimeapi.StartContainerRequest)
	if !ok {
		return
	}
	w.mu.Lock()
	k, name := w.keys[r.ContainerId], w.names[r.ContainerId]
	w.mu.Unlock()
	for _, c := range w.n.runtime.Containers() {
		if c.Id != r.ContainerId && c.State == runtimeapi.ContainerState_CONTAINER_RUNNING && podOf(c.Labels) == k {
			w.violate("%s is started while another container of that name runs", name)
		}
	}
}

// after notes what a call has made.
func (w *world) after(call fakecri.Call, answer any, err error) {
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch r := call.Request.(type) {
	case *runtimeapi.RunPodSandboxRequest:
		w.names[answer.(*runtimeapi.RunPodSandboxResponse).PodSandboxId] = r.Config.Metadata.Name
	case *runtimeapi.CreateContainerRequest:
		id := answer.(*runtimeapi.CreateContainerResponse).ContainerId
		w.names[id] = fmt.Sprintf("%s/%s#%d", w.names[r.PodSandboxId], r.Config.Metadata.Name, r.Config.Metadata.Attempt)
		w.keys[id] = podOf(r.Config.Labels)
	}
}
