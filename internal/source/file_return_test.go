package source

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	v1 "k8s.io/api/core/v1"
)

// returning is a way to remove a manifest and restore it within one burst of events.
type returning struct {
	do func(d *directory, file, content string)
	// restarts: the pod is missing from a snapshot in between.
	restarts bool
}

var returnings = map[string]returning{
	"removed_and_written": {restarts: true, do: func(d *directory, file, content string) {
		d.must(os.Remove(file))
		d.must(os.WriteFile(file, []byte(content), 0o600))
	}},
	"removed_and_renamed_into_place": {restarts: true, do: func(d *directory, file, content string) { d.must(os.Remove(file)); d.write("a.yaml", content) }},
	"moved_out_and_back":             {restarts: true, do: func(d *directory, file, _ string) { d.moveAndBack(file, filepath.Join(d.t.TempDir(), "away")) }},
	"moved_out_and_copied_back": {restarts: true, do: func(d *directory, file, content string) {
		d.moveAway(file, filepath.Join(d.t.TempDir(), "away"))
		d.must(os.WriteFile(file, []byte(content), 0o600))
	}},
	"hidden_and_shown": {restarts: true, do: func(d *directory, file, _ string) { d.moveAndBack(file, filepath.Join(d.path, ".a.yaml")) }},
	"directory_removed_and_made_again": {restarts: true, do: func(d *directory, file, content string) {
		d.must(os.RemoveAll(d.path))
		d.must(os.Mkdir(d.path, 0o700))
		d.must(os.WriteFile(file, []byte(content), 0o600))
	}},
	"directory_moved_and_back": {do: func(d *directory, _, _ string) { d.moveAndBack(d.path, d.path+".off") }},
	"link_removed_and_made_again": {restarts: true, do: func(d *directory, file, _ string) {
		target, _ := os.Readlink(file)
		d.must(os.Remove(file))
		d.must(os.Symlink(target, file))
	}},
	"replaced_by_rename": {do: func(d *directory, _, content string) { d.write("a.yaml", content) }},
	"written_in_place":   {do: func(d *directory, file, content string) { d.must(os.WriteFile(file, []byte(content), 0o600)) }},
	"mode_changed":       {do: func(d *directory, file, _ string) { d.must(os.Chmod(file, 0o640)) }},
	"saved_by_an_editor_with_backup": {do: func(d *directory, file, content string) {
		d.moveAway(file, file+"~")
		d.must(os.WriteFile(file, []byte(content), 0o600))
		d.must(os.Remove(file + "~"))
	}},
	"another_file_removed_and_written": {do: func(d *directory, file, _ string) {
		other := filepath.Join(filepath.Dir(file), "README")
		d.must(os.WriteFile(other, nil, 0o600))
		d.must(os.Remove(other))
		d.must(os.WriteFile(other, nil, 0o600))
	}},
}

func (d *directory) moveAway(from, to string) { d.must(os.Rename(from, to)) }

func (d *directory) moveAndBack(path, away string) {
	d.moveAway(path, away)
	d.must(os.Rename(away, path))
}

// TestManifestReturns removes a manifest and restores it with the same content. If the file did not exist
// in between, the pod is missing from a snapshot, so that it restarts.
func TestManifestReturns(t *testing.T) {
	content := manifestOf("a", "x")
	for name, c := range returnings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDirectory(t)
			d.path = filepath.Join(d.path, "manifests")
			d.must(os.Mkdir(d.path, 0o700))
			d.write("b.yaml", manifestOf("b", "y"))
			file := filepath.Join(d.path, "a.yaml")
			if name == "link_removed_and_made_again" {
				target := filepath.Join(t.TempDir(), "target")
				d.must(os.WriteFile(target, []byte(content), 0o600))
				d.must(os.Symlink(target, file))
			} else {
				d.write("a.yaml", content)
			}
			d.run(d.path, nil)
			d.expect("a=x", "b=y")
			d.tick(file)
			c.do(d, file, content)
			// A later file shows that all events before it were handled.
			time.AfterFunc(3*settleLimit, func() { _ = os.WriteFile(filepath.Join(d.path, "c.yaml"), []byte(manifestOf("c", "z")), 0o600) })
			missing := false
			for {
				names := podNames(d.next())
				missing = missing || !slices.Contains(names, "a-node-1")
				if slices.Contains(names, "c-node-1") {
					break
				}
			}
			if missing != c.restarts {
				t.Errorf("the pod was missing from a snapshot: %v, want %v", missing, c.restarts)
			}
		})
	}
}

// An invalid manifest right after a removal does not keep the removed pod.
func TestRemovedAndReplacedByInvalidManifest(t *testing.T) {
	d := newDirectory(t)
	file := filepath.Join(d.path, "a.yaml")
	d.write("a.yaml", manifestOf("a", "x"))
	d.run(d.path, nil)
	d.expect("a=x")
	d.tick(file)
	d.must(os.Remove(file))
	d.must(os.WriteFile(file, []byte("kind: Pod"), 0o600))
	d.expect()
	d.write("a.yaml", manifestOf("a", "x"))
	d.expect("a=x")
}

// A late removal event belongs to the file before.
func TestLateRemovalEventDoesNotAffectNewFile(t *testing.T) {
	d := newDirectory(t)
	d.write("a.yaml", manifestOf("a", "x"))
	f := d.source(d.path)
	f.scan(true)
	file := filepath.Join(d.path, "a.yaml")
	if gone := f.removed([]fsnotify.Event{{Name: file, Op: fsnotify.Remove}}, d.path); len(gone) != 0 {
		t.Errorf("gone: %v", gone)
	}
	d.tick(file)
	d.must(os.Remove(file))
	d.write("a.yaml", manifestOf("a", "x"))
	if gone := f.removed([]fsnotify.Event{{Name: file, Op: fsnotify.Remove}}, d.path); !slices.Equal(gone, []string{file}) {
		t.Errorf("gone: %v, want %s", gone, file)
	}
}

// ConfigMaps and Secrets of a file that returns stay: pods may use them.
func TestObjectsStayWhileManifestReturns(t *testing.T) {
	d := newDirectory(t)
	content := manifestOf("a", "x") + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}}\n"
	d.write("a.yaml", content)
	d.run(d.path, d)
	d.expect("a=x")
	d.tick(filepath.Join(d.path, "a.yaml"))
	d.must(os.Remove(filepath.Join(d.path, "a.yaml")))
	d.write("a.yaml", content)
	d.expect()
	d.mu.Lock()
	if len(d.configMaps) != 1 {
		t.Errorf("ConfigMaps %v", d.configMaps)
	}
	d.mu.Unlock()
	d.expect("a=x")
}

// tick waits until the filesystem's clock advances, which distinguishes a file from a later one with the
// same inode number.
func (d *directory) tick(file string) {
	d.t.Helper()
	before, err := os.Lstat(file)
	d.must(err)
	for other := filepath.Join(d.t.TempDir(), "now"); ; {
		d.must(os.WriteFile(other, nil, 0o600))
		now, err := os.Lstat(other)
		d.must(err)
		if identify(now).ctime != identify(before).ctime {
			return
		}
	}
}

func (d *directory) next() []*v1.Pod {
	d.t.Helper()
	select {
	case s := <-d.snapshots:
		return s.Pods
	case <-time.After(soon):
		d.t.Fatal("no snapshot")
		return nil
	}
}

func podNames(pods []*v1.Pod) []string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
	}
	return names
}

// source returns a source that does not run.
func (d *directory) source(path string) *File {
	d.t.Helper()
	f, err := NewFile(FileConfig{Path: path, NodeName: "node-1", CheckFrequency: time.Hour},
		FileDeps{Out: d.snapshots, Clock: d.clock, Log: slog.New(slog.DiscardHandler)})
	d.must(err)
	return f
}
