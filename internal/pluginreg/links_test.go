package pluginreg

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/utils/clock"

	"swiftlet/test/poll"
)

// watches counts the inotify watches of this process.
func watches(t *testing.T) (n int) {
	t.Helper()
	infos, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		text, _ := os.ReadFile(info)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "inotify wd:") {
				n++
			}
		}
	}
	return n
}

// TestLinksOutOfTheDirectory: a link to its own parent or to a large tree makes the registry neither
// walk nor watch what is there. A link to one socket works.
func TestLinksOutOfTheDirectory(t *testing.T) {
	dir, tree := newDir(t), t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "own"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if err := os.MkdirAll(filepath.Join(tree, fmt.Sprint(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(filepath.Dir(dir), "s.sock")
	serve(t, outside, &fakePlugin{info: &registration.PluginInfo{Name: "linked", Endpoint: "/x/linked.sock"}})
	for link, to := range map[string]string{
		"world": tree, "loop": dir, "own/up": "..", "own/loop": filepath.Join(dir, "own"), "own/linked.sock": outside, "dangling": "/none",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	serve(t, filepath.Join(dir, "own", "z.sock"), &fakePlugin{info: &registration.PluginInfo{Name: "own", Endpoint: "/x/own.sock"}})
	h := newHandler()
	before := watches(t)
	r, _ := startRegistry(t, dir, h, clock.RealClock{})
	got := map[string]bool{receive(t, h.calls, "a registration"): true, receive(t, h.calls, "a registration"): true}
	if !got["register own own.sock"] || !got["register linked linked.sock"] {
		t.Errorf("calls %v", got)
	}
	if n := watches(t) - before; n > 4 {
		t.Errorf("%d directories are watched", n)
	}
	if n := len(r.Sockets()); n != 2 {
		t.Errorf("%d sockets: %v", n, r.Sockets())
	}
}

// TestManyDirectories: the number and the depth of watched directories are limited.
func TestManyDirectories(t *testing.T) {
	dir := newDir(t)
	deep := filepath.Join(dir, strings.Repeat("d/", 50))
	for _, path := range []string{deep, filepath.Join(dir, "z")} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 700 {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprint("many", i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	serve(t, filepath.Join(dir, "a.sock"), &fakePlugin{info: &registration.PluginInfo{Name: "a"}})
	h := newHandler()
	before := watches(t)
	start(t, dir, h, clock.RealClock{})
	h.expect(t, "register a a.sock")
	poll.Until(t, "the watches", func() bool { return watches(t)-before > maxDirs })
	if n := watches(t) - before; n > maxDirs+3 {
		t.Errorf("%d directories are watched", n)
	}
}

// TestLongInfoIsRejected: the fields of a plugin's info go to logs, metrics and other plugins.
func TestLongInfoIsRejected(t *testing.T) {
	dir := newDir(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h := newHandler()
	long := strings.Repeat("x", 1<<20)
	f := &fakePlugin{info: &registration.PluginInfo{Name: long}}
	serve(t, filepath.Join(dir, "a.sock"), f)
	w := &socketWorker{registry: &Registry{cfg: Config{Dir: dir}, deps: Deps{Clock: clock.RealClock{}, Handlers: map[string]Handler{"CSIPlugin": h}}}, path: filepath.Join(dir, "a.sock")}
	_, _, err := w.register(t.Context(), t.Context())
	if err == nil || len(err.Error()) > 200 || len(h.calls) != 0 {
		t.Errorf("%.300v, %d calls", err, len(h.calls))
	}
}
