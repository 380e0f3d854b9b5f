package bed

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"swiftlet/test/images"
)

// TestBed checks what every test relies on, and that Close leaves nothing behind.
func TestBed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane and containerd")
	}
	b, err := Start(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		checkNothingLeft(t, b.slot)
	})
	b.ShowLogs(t) // registered last, so that it runs before Close
	one, err := b.AddNode(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	two, err := b.AddNode(t.Context(), "two")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("containers survive a containerd stop", func(t *testing.T) { testContainersSurviveContainerdStop(t, one) })
	t.Run("pull from a registry with password", func(t *testing.T) { testPullWithPassword(t, b, one) })
	t.Run("nodes reach each other", func(t *testing.T) {
		if _, err := one.Exec(t.Context(), "busybox", "ping", "-c1", "-W5", two.Address()); err != nil {
			t.Error(err)
		}
	})
	t.Run("nodes do not share files", func(t *testing.T) {
		if _, err := one.Exec(t.Context(), "touch", "/etc/only-here", "/var/lib/kubelet/only-here"); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/etc/only-here", "/var/lib/kubelet/only-here"} {
			if _, err := two.Exec(t.Context(), "test", "!", "-e", path); err != nil {
				t.Errorf("%s of one node is visible on another: %v", path, err)
			}
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("%s of a node is visible on the host: %v", path, err)
			}
		}
		if _, err := os.Stat(one.Path("/var/lib/kubelet/only-here")); err != nil {
			t.Errorf("the node's file is not visible on the host: %v", err)
		}
	})
}

func testContainersSurviveContainerdStop(t *testing.T, node *Box) {
	ctx := t.Context()
	if _, err := node.Exec(ctx, "ctr", "-n", "k8s.io", "run", "--detach", images.Busybox, "stayer", "sleep", "3600"); err != nil {
		t.Fatal(err)
	}
	pid := func() string {
		out, err := node.Exec(ctx, "ctr", "-n", "k8s.io", "tasks", "ls")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "stayer" && f[2] == "RUNNING" {
				return f[1]
			}
		}
		t.Fatalf("the container is not running:\n%s", out)
		return ""
	}
	before := pid()
	if err := node.StopContainerd(); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Exec(ctx, "ctr", "version"); err == nil {
		t.Error("containerd still answers after it was stopped")
	}
	if _, err := node.Exec(ctx, "kill", "-0", before); err != nil {
		t.Errorf("the container exited when containerd was stopped: %v", err)
	}
	if err := node.StartContainerd(ctx); err != nil {
		t.Fatal(err)
	}
	if after := pid(); after != before {
		t.Errorf("container process was %s, is %s", before, after)
	}
}

func testPullWithPassword(t *testing.T, b *Bed, node *Box) {
	r, err := b.StartRegistry("ann", "secret")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	image, err := tarball.ImageFromPath(b.images.Archives[images.Pause], nil)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := r.Push(t.Context(), "team/pause:1", image)
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Trust(r); err != nil {
		t.Fatal(err)
	}
	pull := []string{"ctr", "-n", "k8s.io", "images", "pull", "--local", "--hosts-dir", "/etc/containerd/certs.d"}
	if _, err := node.Exec(t.Context(), append(pull, ref)...); err == nil {
		t.Error("pulled without the password")
	}
	if _, err := node.Exec(t.Context(), append(pull, "--user", "ann:secret", ref)...); err != nil {
		t.Error(err)
	}
}

// checkNothingLeft checks that a closed bed left nothing on the host.
func checkNothingLeft(t *testing.T, s *slot) {
	t.Helper()
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if strings.HasPrefix(link.Name, s.bridge()) {
			t.Errorf("interface %s still exists", link.Name)
		}
	}
	hierarchies, err := readHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hierarchies {
		if left, _ := filepath.Glob(filepath.Join(h.dir, s.cgroupName("*"))); len(left) > 0 {
			t.Errorf("cgroups %v still exist", left)
		}
	}
	if left, _ := filepath.Glob(s.dir + "*"); len(left) > 0 {
		t.Errorf("files %v still exist", left)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), s.dir+"/") {
		t.Errorf("mounts below %s still exist:\n%s", s.dir, mounts)
	}
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), s.dir+"/") {
			t.Errorf("process %s is still running: %s", filepath.Dir(file), strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
}
