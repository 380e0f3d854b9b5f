package path

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
	"swiftlet/test/crashfs"
	"swiftlet/test/trust/tally"
)

// A pod of the API server and a static pod, with what is written to disk for pods.
const (
	writingPod = `
metadata: {name: web}
spec:
  initContainers:
  - {name: init, image: app:1}
  - {name: sidecar, image: app:1, restartPolicy: Always}
  containers:
  - name: main
    image: app:2
    resources: {requests: {cpu: 100m}}
    startupProbe: {exec: {command: ["true"]}}
    readinessProbe: {exec: {command: ["true"]}}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes:
  - {name: data, emptyDir: {}}
`
	writingStaticPod = `
metadata: {name: base}
spec:
  containers:
  - name: main
    image: app:1
    readinessProbe: {exec: {command: ["true"]}}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes:
  - {name: data, emptyDir: {}}
`
)

// TestPowerLossAtEveryWrite cuts the power at each operation that changes the agent's root directory in the
// life of two pods, and starts the machine with what the disk then has.
func TestPowerLossAtEveryWrite(t *testing.T) {
	counts := tally.New(t, "power-loss")
	step := 1
	if testing.Short() {
		step = 23
	}
	for n := 1; ; n += step {
		died := true
		for i, loss := range crashfs.Losses {
			if testing.Short() && i != n/step%len(crashfs.Losses) {
				continue
			}
			ok := t.Run(fmt.Sprintf("at operation %d, %s", n, loss), func(t *testing.T) {
				died = losePower(t, n, loss, counts)
			})
			if died {
				counts.Fault(ok)
			}
		}
		if died && n < 10000 { // it ends, too, if -run selects one operation
			continue
		}
		if n < 100 && !t.Failed() {
			t.Fatalf("there were only %d operations", n-1)
		}
		return
	}
}

// losePower runs the life of the pods with a power loss at operation n. It returns false if there were fewer
// operations.
func losePower(t *testing.T, n int, loss crashfs.Loss, counts *tally.Tally) (died bool) {
	disk, after := crashfs.Mount(t), t.TempDir()
	var log safeBuffer
	prepare := func(w *testNode) {
		w.isOff, w.logTo = disk.IsOff, &log
		w.exits["init"] = 0
		w.runtime.Publish("app:2", 1)
	}
	onTestNodeIn(t, disk.Dir, prepare, func(w *testNode) {
		disk.CutAt(disk.Tried() + n)
		w.liveUntilOff()
		if !disk.IsOff() {
			return
		}
		died = true
		w.stop()
		if err := disk.Build(after, loss); err != nil {
			t.Fatal(err)
		}
		w.boot(after)
		w.pass(2 * time.Minute)
		counts.PodsLost(w.lostPods())
		w.endOfLife(func() {})
		counts.Leaks(w.leftFiles(after))
	})
	checkLog(t, log.String())
	if t.Failed() {
		for i, op := range disk.Log() {
			t.Logf("%d %s", i+1, op)
		}
	}
	return died
}

// liveUntilOff starts the pods, restarts a container, and deletes the pods, until the power is off.
func (w *testNode) liveUntilOff() {
	for _, act := range []func() error{
		func() error { return w.store.apply([]byte(writingPod)) },
		func() error { return w.store.setStatic([]byte(writingStaticPod)) },
		func() error {
			if c := w.container("main"); c != nil {
				w.runtime.Exit(c.Id, 1)
			}
			return nil
		},
		func() error { return w.store.delete("web", 1) },
		func() error { return w.store.setStatic() },
	} {
		if w.isOff() {
			return
		}
		if err := act(); err != nil {
			w.t.Fatal(err)
		}
		for range 30 {
			if w.pass(time.Second); w.isOff() {
				return
			}
		}
	}
}

// boot starts the machine again with another root directory: nothing runs, and the kernel has no cgroups.
func (w *testNode) boot(root string) {
	for _, c := range w.runtime.Containers() {
		if c.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
			w.runtime.Exit(c.Id, 255)
		}
	}
	for _, s := range w.runtime.Sandboxes() {
		w.runtime.KillSandbox(s.Id)
	}
	w.cgroups.mu.Lock()
	clear(w.cgroups.pods)
	w.cgroups.mu.Unlock()
	w.root, w.isOff = root, nil
	w.start()
}

// lostPods counts the pods that should run and do not, and fails the test if there is one.
func (w *testNode) lostPods() (lost int) {
	w.t.Helper()
	for _, p := range append(w.store.list(), w.staticPods()...) {
		if p.DeletionTimestamp != nil {
			w.t.Errorf("pod %s is not deleted", p.Name)
			continue
		}
		ready := 0
		for _, s := range w.runtime.Sandboxes() {
			if s.Metadata.Uid == string(p.UID) && s.State == runtimeapi.PodSandboxState_SANDBOX_READY {
				ready++
			}
		}
		running := map[string]int{}
		for _, c := range w.runtime.Containers() {
			if c.Labels["io.kubernetes.pod.uid"] == string(p.UID) && c.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
				running[c.Metadata.Name]++
			}
		}
		want := map[string]int{"main": 1}
		if !pod.IsStatic(p) {
			want["sidecar"] = 1
		}
		if p.Status.Phase != v1.PodRunning || !isReady(p) || ready != 1 || fmt.Sprint(running) != fmt.Sprint(want) {
			lost++
			w.t.Errorf("pod %s: %d sandboxes are ready, running containers %v\n%s", p.Name, ready, running,
				strings.Join(append(w.showStatus(), w.showRuntime()...), "\n"))
		}
	}
	return lost
}

// endOfLife removes the pods and expects that nothing is left of them. It calls pass while time passes.
func (w *testNode) endOfLife(pass func()) {
	w.t.Helper()
	for _, p := range w.store.list() {
		if err := w.store.delete(p.Name, 1); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := w.store.setStatic(); err != nil {
		w.t.Fatal(err)
	}
	for range 15 {
		w.pass(2 * time.Second)
		pass()
	}
	w.pass(2 * time.Minute)
	w.expect(w.showLeftovers(), nil)
}

// leftFiles counts temporary files and files that were moved aside, and fails the test if there is one.
func (w *testNode) leftFiles(root string) int {
	w.t.Helper()
	var left []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (strings.HasPrefix(d.Name(), ".") || strings.Contains(d.Name(), ".bad")) {
			left = append(left, strings.TrimPrefix(path, root))
		}
		return err
	})
	if err != nil || len(left) > 0 {
		w.t.Errorf("files left: %v %v", left, err)
	}
	return len(left)
}

// checkLog fails the test if the agent found a file that was torn.
func checkLog(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if slices.ContainsFunc([]string{"corrupt", "truncated", "unexpected end", "checksum", "invalid character"}, func(s string) bool {
			return strings.Contains(line, s)
		}) {
			t.Errorf("torn file: %s", line)
		}
	}
}

// safeBuffer is a buffer for concurrent writers.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

var _ io.Writer = &safeBuffer{}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if testing.Verbose() {
		_, _ = os.Stderr.Write(p)
	}
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
