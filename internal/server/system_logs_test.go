package server

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSystemLogs(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		dir + "/messages": "hello", dir + "/pods/c/0.log": "log", outside + "/shadow": "secret",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"relative": "messages", "absolute": dir + "/pods/c/0.log",
		"out": outside + "/shadow", "up": "../" + filepath.Base(outside) + "/shadow", "folder": outside, "nowhere": "none",
		"round": outside + "/../" + filepath.Base(dir) + "/messages",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	n := start(t, true, func(c *Config, _ *Deps) { c.SystemLogDir = dir })
	credentials := n.credentials()
	for path, want := range map[string]struct {
		code int
		body string
	}{
		"/logs/messages":      {200, "hello"},
		"/logs/relative":      {200, "hello"},
		"/logs/absolute":      {200, "log"},
		"/logs/round":         {200, "hello"},
		"/logs/pods/c/0.log":  {200, "log"},
		"/logs/none":          {404, ""},
		"/logs/nowhere":       {404, ""},
		"/logs/out":           {500, ""},
		"/logs/up":            {500, ""},
		"/logs/folder/shadow": {500, ""},
	} {
		code, body, _ := n.get("GET", path, credentials["admin cert"])
		if code != want.code || want.body != "" && body != want.body {
			t.Errorf("%s: %d %q, want %d %q", path, code, body, want.code, want.body)
		}
	}
	if code, _, _ := n.get("GET", "/logs/messages", credentials["proxy token"]); code != 403 {
		t.Errorf("logs with nodes/proxy: %d, want 403: they need nodes/log", code)
	}
}
