package standalone

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseMirror(t *testing.T) {
	for text, want := range map[string]string{
		"docker.io=https://mirror.example.com":            "https://mirror.example.com",
		"docker.io=https://mirror.example.com/":           "https://mirror.example.com",
		"quay.io:443=http://127.0.0.1:5000/proxy/quay.io": "http://127.0.0.1:5000/proxy/quay.io",
		"docker.io":                       "",
		"=https://mirror.example.com":     "",
		"docker.io/x=https://a":           "",
		"..=https://a":                    "",
		"docker.io=mirror.example.com":    "",
		"docker.io=ftp://a":               "",
		"docker.io=https://user:secret@a": "",
		"docker.io=https://":              "",
	} {
		if got, err := ParseMirror(text); got.URL != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %+v, %v, want %q", text, got, err, want)
		}
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWriteRegistries(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"good/config.json":           `{"auths":{"mirror.example.com":{"auth":"YTpi"}}}`,
		"good/mirror.example/ca.crt": "a certificate",
		"clash/docker.io/hosts.toml": "",
		"bad.json":                   "{",
		"helper.json":                `{"credHelpers":{"a":"b"}}`,
	})
	mirrors := []Mirror{{"docker.io", "https://mirror.example"}, {"docker.io", "http://127.0.0.1:5000"}, {"quay.io", "https://other"}}
	for _, row := range []struct {
		name, config string
		mirrors      []Mirror
		want         map[string]string // hosts.toml by registry
		credentials  string            // what the agent's file leads to
		hosts        string            // a registry whose directory is that of the configuration
		wantErr      string
	}{
		{name: "nothing"},
		{name: "mirrors", mirrors: mirrors, want: map[string]string{
			"docker.io": "[host.\"https://mirror.example\"]\n  capabilities = [\"pull\", \"resolve\"]\n[host.\"http://127.0.0.1:5000\"]\n  capabilities = [\"pull\", \"resolve\"]\n",
			"quay.io":   "[host.\"https://other\"]\n  capabilities = [\"pull\", \"resolve\"]\n",
		}},
		{name: "credentials_and_authority", config: "good", mirrors: mirrors[:1], credentials: "good/config.json", hosts: "mirror.example", want: map[string]string{
			"docker.io": "[host.\"https://mirror.example\"]\n  capabilities = [\"pull\", \"resolve\"]\n  ca = \"" + dir + "/good/mirror.example/ca.crt\"\n",
		}},
		{name: "a_file", config: "good/config.json", credentials: "good/config.json"},
		{name: "mirror_of_two_sources", config: "clash", mirrors: mirrors[:1], wantErr: "clash/docker.io has hosts.toml, and --registry-mirror names the same registry"},
		{name: "not_JSON", config: "bad.json", wantErr: "bad.json is not a docker config.json"},
		{name: "credential_helper", config: "helper.json", wantErr: "credential helpers of docker are not supported"},
		{name: "missing", config: "none", wantErr: "no such file"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := Paths{root: t.TempDir(), run: t.TempDir(), bundle: "/b"}
			writeFiles(t, p.registries(), map[string]string{"old.example/hosts.toml": ""})
			if err := os.MkdirAll(p.AgentRoot(), 0o700); err != nil {
				t.Fatal(err)
			}
			link := filepath.Join(p.AgentRoot(), "config.json")
			if err := os.Symlink("/an/earlier/one", link); err != nil {
				t.Fatal(err)
			}
			r := Registries{Mirrors: row.mirrors}
			if row.config != "" {
				r.Config = filepath.Join(dir, row.config)
			}
			err := writeRegistries(p, r)
			if row.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), row.wantErr) {
					t.Errorf("got %v, want %q", err, row.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			files, _ := filepath.Glob(filepath.Join(p.registries(), "*", "hosts.toml"))
			for _, f := range files {
				content, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				got[filepath.Base(filepath.Dir(f))] = string(content)
			}
			if row.hosts != "" {
				if target, err := os.Readlink(filepath.Join(p.registries(), row.hosts)); err != nil || target != filepath.Join(dir, row.config, row.hosts) {
					t.Errorf("%s leads to %q, %v", row.hosts, target, err)
				}
			}
			if !maps.Equal(got, row.want) {
				t.Errorf("got %q\nwant %q", got, row.want)
			}
			want := ""
			if row.credentials != "" {
				want = filepath.Join(dir, row.credentials)
			}
			if target, _ := os.Readlink(link); target != want {
				t.Errorf("credentials are %q, want %q", target, want)
			}
		})
	}
	t.Run("credentials_of_the_user", func(t *testing.T) {
		p := Paths{root: t.TempDir(), run: t.TempDir(), bundle: "/b"}
		writeFiles(t, p.AgentRoot(), map[string]string{"config.json": "{}"})
		if err := writeRegistries(p, Registries{}); err != nil {
			t.Error(err)
		}
		if err := writeRegistries(p, Registries{Config: filepath.Join(dir, "good")}); err == nil || !strings.Contains(err.Error(), "has credentials already") {
			t.Errorf("got %v", err)
		}
	})
}
