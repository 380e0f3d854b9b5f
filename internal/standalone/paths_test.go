package standalone

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
)

func TestPaths(t *testing.T) {
	for name, c := range map[string]struct {
		root, run string
		ok        bool
	}{
		"default paths":        {"/var/lib/swiftlet", "/run/swiftlet", true},
		"relative root":        {"state", "/run/swiftlet", false},
		"root is /":            {"/", "/run/swiftlet", false},
		"run path is too long": {"/var/lib/swiftlet", "/run/" + strings.Repeat("x", 40), false},
	} {
		if _, err := NewPaths(c.root, c.run, "/bundle"); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestContainerdConfigNamesOnlyOurPaths(t *testing.T) {
	p, err := NewPaths("/r", "/s", "/b")
	if err != nil {
		t.Fatal(err)
	}
	config := containerdConfig(p, Registries{}, false, false)
	for _, want := range []string{`root = "/r/containerd"`, `address = "/s/containerd.sock"`, `socket_dir = "/s/s"`,
		`BinaryName = "/b/runc"`, "restrict_oom_score_adj = true", "SystemdCgroup = false", "oom_score = 0"} {
		if !strings.Contains(string(config), want) {
			t.Errorf("%s is missing in:\n%s", want, config)
		}
	}
	// Each setting has a value, and each ${name} was known.
	for line := range strings.Lines(string(config)) {
		if strings.HasSuffix(strings.TrimSpace(line), "=") || strings.Contains(line, "[]") && !strings.Contains(line, "imports") {
			t.Errorf("setting without a value: %s", line)
		}
	}
	unrestricted := containerdConfig(p, Registries{}, true, true)
	for _, want := range []string{"restrict_oom_score_adj = false", "SystemdCgroup = true", "oom_score = -999"} {
		if !strings.Contains(string(unrestricted), want) {
			t.Errorf("%s is missing in:\n%s", want, unrestricted)
		}
	}
}

func TestFilterBackend(t *testing.T) {
	for installed, want := range map[string]string{"nft iptables": "nftables", "iptables": "iptables", "": ""} {
		got, err := filterBackend(func(name string) (string, error) {
			if slices.Contains(strings.Fields(installed), name) {
				return "/sbin/" + name, nil
			}
			return "", exec.ErrNotFound
		})
		if got != want || (err != nil) != (want == "") {
			t.Errorf("with %q: got %q, %v", installed, got, err)
		}
		if err != nil && !errors.Is(err, exec.ErrNotFound) {
			t.Error(err)
		}
	}
}

func TestMountFilters(t *testing.T) {
	const table = `22 1 0:5 / /run/swiftlet rw - tmpfs tmpfs rw
23 22 0:6 / /run/swiftlet/containerd/rootfs rw shared:1 - overlay overlay rw
24 22 0:6 / /var/lib/swiftlet/kubelet/pods/a\040b rw - tmpfs tmpfs rw
25 22 0:6 / /run/swiftlet2/x rw - tmpfs tmpfs rw
26 22 0:7 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
27 22 0:8 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
28 22 0:8 / /mnt/cgroup rw - cgroup2 cgroup2 rw
`
	points := func(filter mountinfo.FilterFunc) []string {
		mounts, err := mountinfo.GetMountsFromReader(strings.NewReader(table), filter)
		if err != nil {
			t.Fatal(err)
		}
		return mountPoints(mounts)
	}
	mounts := points(mountsBelow("/run/swiftlet", "/var/lib/swiftlet"))
	if want := []string{"/run/swiftlet/containerd/rootfs", "/var/lib/swiftlet/kubelet/pods/a b"}; !slices.Equal(mounts, want) {
		t.Errorf("mounts: got %q, want %q", mounts, want)
	}
	groups := points(cgroupMounts)
	if want := []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"}; !slices.Equal(groups, want) {
		t.Errorf("cgroups: got %q, want %q", groups, want)
	}
}

func TestIsShim(t *testing.T) {
	const socket = "/run/swiftlet/containerd.sock"
	for command, want := range map[string]bool{
		"/b/containerd-shim-runc-v2 -namespace k8s.io -id x -address " + socket:                       true,
		"/usr/bin/containerd-shim-runc-v2 -namespace k8s.io -address /run/containerd/containerd.sock": false,
		"/usr/bin/vi -address " + socket: false,
		"/b/containerd-shim-runc-v2":     false,
	} {
		if got := isShim(strings.Fields(command), socket); got != want {
			t.Errorf("%v for %s", got, command)
		}
	}
}
