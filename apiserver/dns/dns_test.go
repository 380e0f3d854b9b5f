package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNameServers(t *testing.T) {
	own := netip.MustParseAddr("10.88.0.1")
	for name, row := range map[string]struct {
		content string
		want    []string
	}{
		"several":             {"search example.com\nnameserver 192.0.2.1\nnameserver 2001:db8::1\n", []string{"192.0.2.1", "2001:db8::1"}},
		"itself":              {"nameserver 10.88.0.1\nnameserver 192.0.2.1\n", []string{"192.0.2.1"}},
		"not_an_address":      {"nameserver dns.example.com\nnameserver 127.0.0.1\n", []string{"127.0.0.1"}},
		"none":                {"search example.com\n", nil},
		"more_than_forwarded": {strings.Repeat("nameserver 192.0.2.1\n", 20), slices.Repeat([]string{"192.0.2.1"}, maxNameServers)},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "resolv.conf")
			if err := os.WriteFile(file, []byte(row.content), 0o600); err != nil {
				t.Fatal(err)
			}
			watch, err := watchNameServers(file, own)
			if err != nil {
				t.Fatal(err)
			}
			defer watch.close()
			if !slices.Equal(watch.servers, row.want) {
				t.Errorf("got %v, want %v", watch.servers, row.want)
			}
		})
	}
}

// TestNameServersChange: a file that another program replaces ends the process, also where it was a link, or did not exist.
func TestNameServersChange(t *testing.T) {
	const before, after = "nameserver 192.0.2.1\n", "nameserver 192.0.2.2\n"
	write := func(t *testing.T, file, content string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	for name, prepare := range map[string]func(t *testing.T, dir, file string) (changed string){
		"file": func(t *testing.T, _, file string) string {
			write(t, file, before)
			return file
		},
		"link": func(t *testing.T, dir, file string) string {
			target := filepath.Join(t.TempDir(), "target")
			write(t, target, before)
			if err := os.Symlink(target, file); err != nil {
				t.Fatal(err)
			}
			return target
		},
		"new": func(_ *testing.T, _, file string) string { return file },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "resolv.conf")
			changed := prepare(t, dir, file)
			watch, err := watchNameServers(file, netip.Addr{})
			if err != nil {
				t.Fatal(err)
			}
			defer watch.close()
			write(t, filepath.Join(dir, "another"), after)
			write(t, changed, "search example.com\n") // without name servers, the old ones are better
			write(t, changed, after)
			if err := watch.run(t.Context()); err == nil || !strings.Contains(err.Error(), "192.0.2.2") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCorefile(t *testing.T) {
	f := flags{kubeconfig: "/run/a b", domain: "cluster.local"}
	got := corefile(f, []string{"192.0.2.1", "192.0.2.2"})
	for _, want := range []string{"kubernetes cluster.local in-addr.arpa", `kubeconfig "/run/a b"`, "forward . 192.0.2.1 192.0.2.2 {", "disable success cluster.local"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := corefile(f, nil); strings.Contains(got, "forward") {
		t.Errorf("forwards to nothing:\n%s", got)
	}
}
