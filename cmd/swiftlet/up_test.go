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
	if testing.Short() {
		t.Skip("runs pods")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	swiftlet, err := filepath.Abs("../../bin/swiftlet")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(swiftlet); err != nil {
		t.Fatal("bin/swiftlet is missing: make build")
	}
	// The script changes the manifests.
	manifests := t.TempDir()
	if err := os.CopyFS(manifests, os.DirFS("../../examples/manifests")); err != nil {
		t.Fatal(err)
	}
	plugin := filepath.Join(t.TempDir(), "deviceplugin")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", plugin, "../../test/deviceplugin").CombinedOutput(); err != nil {
		t.Fatalf("build device plugin: %v\n%s", err, out)
	}
	name := fmt.Sprintf("swiftlet-test-%d", os.Getpid())
	t.Cleanup(func() { removeCgroups(name) })
	script := exec.CommandContext(t.Context(), "../../internal/standalone/testdata/box.sh", name,
		"testdata/up.sh", swiftlet, t.TempDir(), manifests, plugin)
	out, err := script.CombinedOutput()
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
