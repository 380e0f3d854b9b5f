package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"swiftlet/internal/cri"
	"swiftlet/internal/logs"
	"swiftlet/internal/pod"
)

// fakeContainers is one pod with containers in all states.
type fakeContainers struct {
	pod      *v1.Pod
	observed *pod.Observed
}

func newFakeContainers() fakeContainers {
	p := &v1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(`
metadata: {namespace: ns, name: web, uid: uid-1}
spec:
  initContainers: [{name: init}]
  containers: [{name: main, tty: true}, {name: plain}, {name: pulling}, {name: failing}, {name: new}, {name: lost}, {name: unknown}, {name: gone}]
  ephemeralContainers: [{name: debug}]
status:
  initContainerStatuses: [{name: init, state: {terminated: {containerID: "fake://init-0"}}}]
  ephemeralContainerStatuses: [{name: debug, containerID: "fake://debug-0", state: {running: {}}}]
  containerStatuses:
  - {name: main, containerID: "fake://main-1", state: {running: {}}, lastState: {terminated: {containerID: "fake://main-0"}}}
  - {name: plain, containerID: "fake://plain-0", state: {running: {}}}
  - {name: pulling, state: {waiting: {reason: ErrImagePull}}}
  - {name: failing, state: {waiting: {reason: ImagePullBackOff}}}
  - {name: new, state: {waiting: {reason: ContainerCreating}}}
  - {name: lost, state: {terminated: {exitCode: 137}}}
  - {name: unknown, state: {}}
  - {name: gone, containerID: "fake://gone-0", state: {running: {}}}
`), p); err != nil {
		panic(err)
	}
	o := &pod.Observed{Sandboxes: []pod.Sandbox{{ID: "sandbox", Ready: true}}}
	for _, c := range []struct {
		id    string
		state pod.ContainerState
	}{{"main-1", pod.Running}, {"main-0", pod.Exited}, {"plain-0", pod.Running}, {"init-0", pod.Exited}, {"debug-0", pod.Running}} {
		name, _, _ := strings.Cut(c.id, "-")
		o.Containers = append(o.Containers, pod.Container{ID: c.id, Name: name, State: c.state, LogPath: "/logs/" + c.id})
	}
	return fakeContainers{p, o}
}

func (f fakeContainers) Pod(namespace, name string) (*v1.Pod, bool) {
	return f.pod, namespace == f.pod.Namespace && name == f.pod.Name
}

func (f fakeContainers) Observed(types.UID) *pod.Observed { return f.observed }

func (f fakeContainers) Exited(types.UID, string) (<-chan struct{}, func()) {
	return make(chan struct{}), func() {}
}

// fakeLogs writes the path and options it is called with.
type fakeLogs struct{}

func (fakeLogs) Read(_ context.Context, path string, o logs.Options, w io.Writer) error {
	if path == "/logs/plain-0" {
		return errors.New("read log: no such file")
	}
	words := []string{path, string(o.Stream)}
	if o.Tail != nil {
		words = append(words, "tail")
	}
	if o.Ended != nil {
		words = append(words, "follow")
	}
	_, err := io.WriteString(w, strings.Join(words, " "))
	return err
}

// fakeRuntime serves streams at url and records the last request.
type fakeRuntime struct {
	url string
	err error

	mu   sync.Mutex
	last any
}

func (f *fakeRuntime) record(request any) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = request
	return f.url, f.err
}

func (f *fakeRuntime) Exec(_ context.Context, r *runtimeapi.ExecRequest) (string, error) {
	return f.record(r)
}

func (f *fakeRuntime) Attach(_ context.Context, r *runtimeapi.AttachRequest) (string, error) {
	return f.record(r)
}

func (f *fakeRuntime) PortForward(_ context.Context, r *runtimeapi.PortForwardRequest) (string, error) {
	return f.record(r)
}

func (f *fakeRuntime) ExecSync(_ context.Context, id string, command []string, _ time.Duration) (cri.ExecResult, error) {
	_, err := f.record(command)
	if command[0] == "false" {
		return cri.ExecResult{ExitCode: 1, Stderr: []byte("no")}, err
	}
	return cri.ExecResult{Stdout: []byte(id + " out "), Stderr: []byte("err")}, err
}

func (f *fakeRuntime) Checkpoint(_ context.Context, id, path string, timeout time.Duration) error {
	if id == "plain-0" {
		return errors.New("criu is missing")
	}
	_, err := f.record(fmt.Sprintf("checkpoint %s to %s in %s", id, path, timeout))
	return err
}
