package pki

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestEnsure(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := Config{Dir: filepath.Join(t.TempDir(), "pki"), Node: "node", Addresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	ensure := func(node string, at time.Time) map[string]string {
		t.Helper()
		c.Node = node
		if err := Ensure(c, at); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		contents := map[string]string{}
		for _, f := range files {
			info, err := f.Info()
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: mode %v, error %v; want 0600", f.Name(), info.Mode(), err)
			}
			content, err := os.ReadFile(filepath.Join(c.Dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			contents[f.Name()] = string(content)
		}
		return contents
	}
	first := ensure("node", now)
	kept := ensure("node", now.Add(24*time.Hour))
	renamed := ensure("other", now.Add(24*time.Hour))
	late := ensure("other", now.Add(leafLife))
	for _, row := range []struct {
		what  string
		file  string
		a, b  map[string]string
		equal bool
	}{
		{"CA is kept a day later", "ca.crt", first, kept, true},
		{"server's certificate is kept a day later", "apiserver.crt", first, kept, true},
		{"key of service accounts is kept a day later", "sa.key", first, kept, true},
		{"new node name needs a new certificate of the kubelet", "kubelet.crt", kept, renamed, false},
		{"new node name needs a new certificate of the server", "apiserver.crt", kept, renamed, false},
		{"administrator's certificate is kept with a new node name", "admin.crt", kept, renamed, true},
		{"administrator's certificate is renewed before it expires", "admin.crt", renamed, late, false},
		{"CA is kept when its certificates are renewed", "ca.crt", first, late, true},
		{"tokens stay valid when certificates are renewed", "sa.key", first, late, true},
	} {
		if (row.a[row.file] == row.b[row.file]) != row.equal {
			t.Errorf("%s: equal %t, want %t", row.what, !row.equal, row.equal)
		}
	}
}

func TestKubeconfigIsPrivateUnlessAGroupIsGiven(t *testing.T) {
	dir := t.TempDir()
	if err := Ensure(Config{Dir: dir, Node: "node"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for group, want := range map[string]os.FileMode{"": 0o600, "root": 0o640} {
		file := filepath.Join(dir, "admin.kubeconfig")
		if err := WriteKubeconfig(file, "https://127.0.0.1:6443", dir, "admin", group); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("group %q: mode %v, error %v; want %v", group, info.Mode(), err, want)
		}
	}
	if err := WriteKubeconfig(filepath.Join(dir, "x"), "", dir, "admin", "no-such-group"); err == nil {
		t.Error("an unknown group is accepted")
	}
}
