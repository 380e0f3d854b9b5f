package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestUp runs testdata/up.sh with the built binary in namespaces of its own.
func TestUp(t *testing.T) {
	swiftlet := built(t, "swiftlet", "make build")
	plugin := filepath.Join(t.TempDir(), "deviceplugin")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", plugin, "../../test/deviceplugin").CombinedOutput(); err != nil {
		t.Fatalf("build device plugin: %v\n%s", err, out)
	}
	runInBox(t, "testdata/up.sh", swiftlet, t.TempDir(), examples(t), plugin)
}

// TestUpAPI runs testdata/up_api.sh, as TestUp does.
func TestUpAPI(t *testing.T) {
	swiftlet := built(t, "swiftlet", "make build")
	built(t, "api/swiftlet-apiserver", "make api")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runInBox(t, "testdata/up_api.sh", swiftlet, t.TempDir(), examples(t), self)
}

// built returns the path of a program in bin, or skips a test that cannot run pods.
func built(t *testing.T, name, target string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs pods")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	path, err := filepath.Abs("../../bin/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("bin/%s is missing: %s", name, target)
	}
	return path
}

// examples returns a copy of the example manifests, which scripts change.
func examples(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/manifests")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func runInBox(t *testing.T, script ...string) {
	t.Helper()
	name := fmt.Sprintf("swiftlet-test-%d", os.Getpid())
	t.Cleanup(func() { removeCgroups(name) })
	out, err := exec.CommandContext(t.Context(), "../../internal/standalone/testdata/box.sh", append([]string{name}, script...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// removeCgroups removes the cgroup of the test from every hierarchy, children first. A script that
// failed may leave children.
func removeCgroups(name string) {
	for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
		tops, _ := filepath.Glob(pattern)
		for _, top := range tops {
			var dirs []string
			_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					dirs = append(dirs, path)
				}
				return nil
			})
			for _, dir := range slices.Backward(dirs) {
				_ = os.Remove(dir)
			}
		}
	}
}

func TestColours(t *testing.T) {
	for _, row := range []struct {
		when     string
		terminal bool
		noColor  string
		want     bool
	}{
		{"auto", true, "", true},
		{"auto", true, "1", false},
		{"auto", false, "", false},
		{"always", false, "1", true},
		{"never", true, "", false},
	} {
		if got, err := colours(row.when, row.terminal, row.noColor); got != row.want || err != nil {
			t.Errorf("%+v: got %t, %v", row, got, err)
		}
	}
	if _, err := colours("sometimes", true, ""); err == nil {
		t.Error("no error for an unknown value")
	}
}
