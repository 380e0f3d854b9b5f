package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/pod"
)

// soon is the timeout for a change. TestChangeIsReadWithinASecond tests that it takes much less.
const soon = 10 * time.Second

// directory is a manifest directory with a running source.
type directory struct {
	t         *testing.T
	path      string
	snapshots chan pod.Snapshot
	clock     clock.WithTicker
	runtime   Runtime

	mu         sync.Mutex
	problems   []string
	configMaps []*v1.ConfigMap
	secrets    []*v1.Secret
}

func (d *directory) SetObjects(configMaps []*v1.ConfigMap, secrets []*v1.Secret) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.configMaps, d.secrets = configMaps, secrets
}

func newDirectory(t *testing.T) *directory {
	return &directory{t: t, path: t.TempDir(), snapshots: make(chan pod.Snapshot), clock: clock.RealClock{}}
}

// run runs a source until the end of the test.
func (d *directory) run(path string, objects Objects) {
	d.t.Helper()
	f, err := NewFile(
		FileConfig{Path: path, NodeName: "node-1", CheckFrequency: time.Hour},
		FileDeps{
			Out: d.snapshots, Clock: d.clock, Log: slog.New(slog.DiscardHandler), Objects: objects, Runtime: d.runtime,
			OnError: func(path string, err error) {
				d.mu.Lock()
				defer d.mu.Unlock()
				d.problems = append(d.problems, strings.ReplaceAll(filepath.Base(path)+": "+err.Error(), d.path+"/", ""))
			},
		})
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	d.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			d.t.Error(err)
		}
	})
}

// expect waits for a snapshot of exactly these pods, written "NAME=IMAGE". Earlier snapshots may have part
// of the change.
func (d *directory) expect(want ...string) []*v1.Pod {
	d.t.Helper()
	timeout := time.After(soon)
	var got []string
	for {
		select {
		case s := <-d.snapshots:
			got = nil
			for _, p := range s.Pods {
				got = append(got, strings.TrimSuffix(p.Name, "-node-1")+"="+p.Spec.Containers[0].Image)
			}
			slices.Sort(got)
			if slices.Equal(got, want) {
				return s.Pods
			}
		case <-timeout:
			d.t.Fatalf("pods %v, want %v", got, want)
		}
	}
}

func (d *directory) expectProblems(want ...string) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if diff := cmp.Diff(want, d.problems); diff != "" {
		d.t.Error(diff)
	}
	d.problems = nil
}

func manifestOf(name, image string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: %q}]}\n", name, image)
}

func (d *directory) write(name, content string) {
	d.t.Helper()
	// By rename, so that no partial file is read.
	temporary := filepath.Join(d.t.TempDir(), "new")
	if err := os.WriteFile(temporary, []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.must(os.Rename(temporary, filepath.Join(d.path, name)))
}

func (d *directory) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func TestFilesAreAddedChangedAndRemoved(t *testing.T) {
	d := newDirectory(t)
	d.run(d.path, nil)
	d.expect()
	d.write("a.yaml", manifestOf("a", "x:1"))
	first := d.expect("a=x:1")
	d.write("b.yaml", manifestOf("b", "y"))
	second := d.expect("a=x:1", "b=y")
	if second[0] != first[0] {
		t.Error("a pod whose file did not change was decoded again")
	}
	d.write("a.yaml", manifestOf("a", "x:2"))
	third := d.expect("a=x:2", "b=y")
	if third[0].UID == first[0].UID {
		t.Error("a changed pod has the old uid")
	}
	d.must(os.Remove(filepath.Join(d.path, "b.yaml")))
	d.expect("a=x:2")
	d.expectProblems()
}

func TestWrittenInPlace(t *testing.T) {
	d := newDirectory(t)
	d.run(d.path, nil)
	d.expect()
	file, err := os.Create(filepath.Join(d.path, "a.yaml"))
	d.must(err)
	for _, line := range strings.SplitAfter(manifestOf("a", "x"), "\n") {
		_, err := file.WriteString(line)
		d.must(err)
	}
	d.must(file.Close())
	d.expect("a=x")
}

func TestInvalidFileKeepsItsLastValidPods(t *testing.T) {
	d := newDirectory(t)
	d.write("a.yaml", manifestOf("a", "x:1"))
	d.write("b.yaml", manifestOf("b", "y:1"))
	d.run(d.path, nil)
	d.expect("a=x:1", "b=y:1")
	d.write("a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c}]}\n")
	d.write("b.yaml", manifestOf("b", "y:2"))
	d.expect("a=x:1", "b=y:2")
	d.write("a.yaml", "")
	d.write("b.yaml", manifestOf("b", "y:3"))
	d.expect("a=x:1", "b=y:3")
	d.write("a.yaml", manifestOf("a", "x:2"))
	d.expect("a=x:2", "b=y:3")
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, want := range []string{`a.yaml: pod "a": spec.containers[0].image: Required value`, "a.yaml: no object found"} {
		if i >= len(d.problems) || d.problems[i] != want {
			t.Fatalf("problems %q, want %q among them", d.problems, want)
		}
	}
}

func TestLargeFileIsReadUpToTheBound(t *testing.T) {
	const size = 256 << 20
	path := filepath.Join(t.TempDir(), "large.yaml")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readFile(path)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "is larger than") {
		t.Errorf("error %v, want one that names the bound", err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got >= size/2 {
		t.Errorf("allocated %d MiB for a file of %d MiB", got>>20, size>>20)
	}
}

func TestSameNameInTwoFiles(t *testing.T) {
	d := newDirectory(t)
	d.write("b.yaml", manifestOf("a", "x"))
	d.run(d.path, nil)
	d.expect("a=x")
	d.write("a.yaml", manifestOf("a", "other")+"---\n"+manifestOf("c", "z"))
	d.expect("a=x", "c=z") // the pod that runs is not replaced
	d.expectProblems("a.yaml: pod default/a-node-1 is in both b.yaml and a.yaml; the one in b.yaml is used")
	d.must(os.Remove(filepath.Join(d.path, "b.yaml")))
	d.expect("a=other", "c=z")
	d.expectProblems()
}

func TestSameNameTwiceInOneFile(t *testing.T) {
	d := newDirectory(t)
	d.write("a.yaml", manifestOf("a", "x")+"---\n"+manifestOf("a", "y"))
	d.run(d.path, nil)
	d.expect("a=x")
	d.expectProblems("a.yaml: pod default/a-node-1 is twice in a.yaml; the first is used")
}

func TestIgnoredFiles(t *testing.T) {
	d := newDirectory(t)
	d.write(".hidden.yaml", manifestOf("hidden", "x"))
	d.must(os.Mkdir(filepath.Join(d.path, "folder.yaml"), 0o700))
	d.must(os.Symlink("nowhere", filepath.Join(d.path, "dangling.yaml")))
	d.write("a.manifest", manifestOf("a", "x"))
	d.run(d.path, nil)
	d.expect("a=x")
	d.expectProblems()
}

func TestExtensions(t *testing.T) {
	f := File{cfg: FileConfig{Extensions: []string{".yaml", ".json"}}}
	for name, want := range map[string]bool{"a.yaml": true, "a.json": true, "a.yaml~": false, "a.bak": false, "README": false, ".a.yaml": false} {
		if f.isManifest(name) != want {
			t.Errorf("%s: %v, want %v", name, !want, want)
		}
	}
}

func TestOneFile(t *testing.T) {
	d := newDirectory(t)
	d.run(filepath.Join(d.path, "pod.json"), nil)
	d.expect()
	d.write("pod.json", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}`)
	d.expect("a=x")
	d.must(os.Remove(filepath.Join(d.path, "pod.json")))
	d.expect()
}

func TestDirectoryIsCreatedRemovedAndCreatedAgain(t *testing.T) {
	d := newDirectory(t)
	root := d.path
	d.path = filepath.Join(root, "etc", "manifests")
	d.run(d.path, nil)
	d.expect()
	for _, name := range []string{"a", "b"} {
		d.must(os.MkdirAll(d.path, 0o700))
		d.write("pod.yaml", manifestOf(name, "x"))
		d.expect(name + "=x")
		d.must(os.RemoveAll(filepath.Join(root, "etc")))
		d.expect()
	}
	d.expectProblems()
}

// As in a ConfigMap volume: symlinks into a directory behind a symlink that is replaced.
func TestReplacedSymlinks(t *testing.T) {
	d := newDirectory(t)
	version := func(name, image string) {
		d.must(os.Mkdir(filepath.Join(d.path, name), 0o700))
		d.write(name+"/a.yaml", manifestOf("a", image))
		d.must(os.Symlink(name, filepath.Join(d.path, "..new")))
		d.must(os.Rename(filepath.Join(d.path, "..new"), filepath.Join(d.path, "..data")))
	}
	version("..1", "x:1")
	d.must(os.Symlink("..data/a.yaml", filepath.Join(d.path, "a.yaml")))
	d.run(d.path, nil)
	d.expect("a=x:1")
	version("..2", "x:2")
	d.expect("a=x:2")
	version("..3", "x:3")
	d.expect("a=x:3")
}

func TestSymlinkToFileAndDirectory(t *testing.T) {
	d := newDirectory(t)
	elsewhere, link := t.TempDir(), filepath.Join(t.TempDir(), "manifests")
	target := filepath.Join(elsewhere, "target")
	d.must(os.WriteFile(target, []byte(manifestOf("a", "x:1")), 0o600))
	d.must(os.Symlink(target, filepath.Join(d.path, "a.yaml")))
	d.must(os.Symlink(d.path, link))
	d.run(link, nil)
	d.expect("a=x:1")
	d.must(os.WriteFile(target+".new", []byte(manifestOf("a", "x:2")), 0o600))
	d.must(os.Rename(target+".new", target))
	d.expect("a=x:2")
	d.write("b.yaml", manifestOf("b", "y"))
	d.expect("a=x:2", "b=y")
	d.must(os.Symlink(t.TempDir(), link+".new"))
	d.must(os.Rename(link+".new", link))
	d.expect()
}

func TestRescanFindsChangesWithoutEvents(t *testing.T) {
	d := newDirectory(t)
	fake := clocktesting.NewFakeClock(time.Now())
	d.clock = fake
	d.write("a.yaml", manifestOf("a", "x:1"))
	f, err := NewFile(FileConfig{Path: d.path, NodeName: "node-1", CheckFrequency: time.Hour},
		FileDeps{Out: d.snapshots, Clock: fake, Log: slog.New(slog.DiscardHandler)})
	d.must(err)
	f.scan(true)
	before, _ := f.assemble()
	f.scan(false)
	if again, _ := f.assemble(); !again.same(before) {
		t.Error("nothing changed, but the pods did")
	}
	d.write("a.yaml", manifestOf("a", "x:2"))
	f.scan(false)
	if after, _ := f.assemble(); after.pods[0].Spec.Containers[0].Image != "x:2" {
		t.Error("the change was not found")
	}
}

func TestUnreadableDirectoryKeepsPods(t *testing.T) {
	d := newDirectory(t)
	d.must(os.Symlink("loop", filepath.Join(d.path, "loop"))) // stat fails, but not with "does not exist"
	f, err := NewFile(FileConfig{Path: filepath.Join(d.path, "loop"), NodeName: "node-1", CheckFrequency: time.Hour},
		FileDeps{Out: d.snapshots, Clock: d.clock, Log: slog.New(slog.DiscardHandler)})
	d.must(err)
	f.scan(true)
	if _, ok := f.assemble(); ok {
		t.Error("a snapshot is sent of a directory that cannot be read")
	}
}

func TestStandaloneObjects(t *testing.T) {
	d := newDirectory(t)
	d.write("all.yaml", `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {k: v}}
- {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, stringData: {password: secret}}
- apiVersion: v1
  kind: Pod
  metadata: {name: a}
  spec: {containers: [{name: c, image: x, envFrom: [{configMapRef: {name: cm}}]}]}
`)
	d.run(d.path, d)
	d.expect("a=x")
	d.mu.Lock()
	if len(d.configMaps) != 1 || d.configMaps[0].Namespace != "default" || d.configMaps[0].Data["k"] != "v" {
		t.Errorf("config maps %v", d.configMaps)
	}
	if len(d.secrets) != 1 || string(d.secrets[0].Data["password"]) != "secret" || d.secrets[0].Type != "Opaque" {
		t.Errorf("secrets %v", d.secrets)
	}
	d.mu.Unlock()
	d.must(os.Remove(filepath.Join(d.path, "all.yaml")))
	d.expect()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.configMaps != nil || d.secrets != nil {
		t.Error("objects outlive their file")
	}
}

func TestObjectsAreRejectedWithAPIServer(t *testing.T) {
	d := newDirectory(t)
	d.write("a.yaml", `{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}}`)
	d.write("b.yaml", `{apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{name: c, image: x, envFrom: [{secretRef: {name: s}}]}]}}`)
	d.run(d.path, nil)
	d.expect()
	d.expectProblems(
		"a.yaml: ConfigMaps and Secrets are read from files only where there is no API server",
		`b.yaml: pod "b": static pods may not reference secrets`)
}

func TestChangeIsReadWithinASecond(t *testing.T) {
	d := newDirectory(t)
	d.run(d.path, nil)
	d.expect()
	began := time.Now()
	d.write("a.yaml", manifestOf("a", "x"))
	d.expect("a=x")
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %v", took)
	}
}

func TestEventsOfOtherFilesAreIgnored(t *testing.T) {
	d := newDirectory(t)
	d.must(os.Mkdir(filepath.Join(d.path, "manifests"), 0o700))
	f, err := NewFile(FileConfig{Path: filepath.Join(d.path, "manifests"), NodeName: "n", CheckFrequency: time.Hour},
		FileDeps{Out: d.snapshots, Clock: d.clock, Log: slog.New(slog.DiscardHandler)})
	d.must(err)
	i := f.interest()
	for name, want := range map[string]bool{
		"manifests": true, "manifests/a.yaml": true, "manifests/..data": true, "neighbour": false, "neighbour/a.yaml": false,
	} {
		if i.relevant(filepath.Join(d.path, name)) != want {
			t.Errorf("%s: %v, want %v", name, !want, want)
		}
	}
}
