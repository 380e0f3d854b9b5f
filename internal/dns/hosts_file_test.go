package dns

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// The bytes the reference kubelet was recorded writing.
const recordedHead = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"

func TestHosts(t *testing.T) {
	aliases := []v1.HostAlias{{IP: "1.2.3.4", Hostnames: []string{"a", "b"}}, {IP: "::5", Hostnames: []string{"c"}}}
	for name, c := range map[string]struct {
		edit func(*v1.PodSpec)
		ips  []string
		want string
	}{
		"one IP":       {func(*v1.PodSpec) {}, []string{"10.244.1.53"}, recordedHead + "10.244.1.53\tweb\n"},
		"dual stack":   {func(*v1.PodSpec) {}, []string{"10.244.1.53", "fd00::1"}, recordedHead + "10.244.1.53\tweb\nfd00::1\tweb\n"},
		"subdomain":    {func(s *v1.PodSpec) { s.Hostname, s.Subdomain = "alpha", "web" }, []string{"10.244.1.54"}, recordedHead + "10.244.1.54\talpha.web.ns.svc.cluster.local\talpha\n"},
		"aliases":      {func(s *v1.PodSpec) { s.HostAliases = aliases }, nil, recordedHead + "\n# Entries added by HostAliases.\n1.2.3.4\ta\tb\n::5\tc\n"},
		"host network": {func(s *v1.PodSpec) { s.HostNetwork = true }, []string{"192.0.2.2"}, "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost node\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newResolver(t, Config{ClusterDomain: "cluster.local", HostsFile: nodeFile(t, "127.0.0.1 localhost node\n")})
			got, err := r.Hosts(newPod(c.edit), c.ips)
			if err != nil || string(got) != c.want {
				t.Errorf("got %q %v\nwant %q", got, err, c.want)
			}
		})
	}
}

func TestEnsureHosts(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	r, _ := newResolver(t, Config{})
	path := filepath.Join(t.TempDir(), "pods", "u", "etc-hosts")
	p := newPod(func(*v1.PodSpec) {})
	if err := r.EnsureHosts(path, p, []string{"10.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	first, err := os.Stat(path)
	if err != nil || first.Mode().Perm() != 0o644 {
		t.Fatalf("mode %v %v, want readable by all whatever the umask", first.Mode(), err)
	}

	// A new IP reaches containers that have mounted the file.
	if err := r.EnsureHosts(path, p, []string{"10.0.0.2"}); err != nil {
		t.Fatal(err)
	}
	second, _ := os.Stat(path)
	content, _ := os.ReadFile(path)
	if !os.SameFile(first, second) || string(content) != recordedHead+"10.0.0.2\tweb\n" {
		t.Errorf("same file %v, content %q", os.SameFile(first, second), content)
	}

	// Without a change nothing is written.
	if err := r.EnsureHosts(path, p, []string{"10.0.0.2"}); err != nil {
		t.Fatal(err)
	}
	third, _ := os.Stat(path)
	if !third.ModTime().Equal(second.ModTime()) {
		t.Error("an unchanged file was written again")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) != 0 {
		t.Errorf("left behind %v", left)
	}
}
