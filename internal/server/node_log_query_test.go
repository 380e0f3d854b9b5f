package server

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// journalctl is a fake that lists two services and prints its arguments.
const journalctl = `#!/bin/sh
if [ "$1" = --field ]; then
	printf 'kubelet.service\nfailing.service\ninit.scope\n'
	exit
fi
for a; do printf '<%s>' "$a"; done
case "$*" in *failing*) echo 'no such boot' >&2; exit 1;; esac
`

// newLogQueryNode serves a log directory and a journal.
func newLogQueryNode(t *testing.T) *node {
	t.Helper()
	dir, outside, tools := t.TempDir(), t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		dir + "/plain": "plain text", dir + "/app.log": "app text", dir + "/nested/nested.log": "nested text", dir + "/kubelet.log": "from a file",
		outside + "/shadow": "secret", tools + "/journalctl": journalctl,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"out": outside + "/shadow", "up.log": "../" + filepath.Base(outside) + "/shadow", "inside": dir + "/plain"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	return start(t, true, func(c *Config, _ *Deps) {
		c.SystemLogDir = dir
		*c.Kubelet.EnableSystemLogQuery = true
	})
}

func TestNodeLogQuery(t *testing.T) {
	const common = "200 <--utc><--no-pager><--output=short-precise>"
	n := newLogQueryNode(t)
	n.expect(map[string]string{
		"GET /logs/?query=kubelet":                                   common + "<--unit=kubelet>",
		"GET /logs/?query=kubelet&tailLines=5&boot=-1&pattern=--all": common + "<--pager-end><--lines=5><--unit=kubelet><--grep=--all><--boot=-1>",
		"GET /logs/?query=kubelet&sinceTime=2026-11-15T02:00:00%2B02:00&untilTime=2026-11-16T00:00:00Z": common +
			"<--since=2026-11-15 00:00:00 UTC><--until=2026-11-16 00:00:00 UTC><--unit=kubelet>",
		"GET /logs/?query=failing":                           common + "<--unit=failing>no such boot\n",
		"GET /logs/?query=kubelet&query=plain":               common + "<--unit=kubelet>plain text",
		"GET /logs/?query=let":                               "200 \nlog not found for let\n",
		"GET /logs/?query=plain":                             "200 plain text",
		"GET /logs/?query=app":                               "200 app text",
		"GET /logs/?query=app.log":                           "200 app text",
		"GET /logs/?query=nested":                            "200 nested text",
		"GET /logs/?query=inside":                            "200 plain text",
		"GET /logs/?query=plain&query=none":                  "200 plain text\nlog not found for none\n",
		"GET /logs/?query=/app.log":                          "200 app text",
		"GET /logs/?query=nested/nested.log":                 "200 nested text",
		`GET /logs/?query=nested\nested.log`:                 "200 nested text",
		"GET /logs/?query=app&tailLines=5":                   "200 \noptions present and query resolved to log files for [app]\ntry without specifying options\n",
		"GET /logs/?query=out":                               "200 \nerror getting log for out: openat out: path escapes from parent\n",
		"GET /logs/?query=up":                                "200 \nerror getting log for up: openat up.log: path escapes from parent\n",
		"GET /logs/?query=pipe":                              "200 \nerror getting log for pipe: open pipe: neither a file nor a directory\n",
		"GET /logs/?query=..":                                "200 \nerror getting log for ..: openat ..: path escapes from parent\n",
		"GET /logs/?query=../shadow":                         `406 query: Invalid value: ["../shadow"]: openat ../shadow: path escapes from parent` + "\n",
		"GET /logs/?query=/none":                             `406 query: Invalid value: ["/none"]: openat none: no such file or directory` + "\n",
		"GET /logs/?query=":                                  `400 query: Invalid value: [""]: may not be empty` + "\n",
		"GET /logs/?query=%20":                               `400 query: Invalid value: [" "]: may not be empty` + "\n",
		"GET /logs/?tailLines=5":                             "406 query: Required value: cannot be empty with options\n",
		"GET /logs/?query=a&query=/b":                        `406 query: Invalid value: "[/b], [a]": cannot specify a file and service` + "\n",
		"GET /logs/?query=/a&query=/b":                       `406 query: Invalid value: ["/a","/b"]: cannot specify more than one file` + "\n",
		"GET /logs/?query=/app.log&tailLines=1":              `406 query: Invalid value: ["/app.log"]: cannot specify file with options` + "\n",
		"GET /logs/?query=a&tailLines=x&boot=y":              `400 [boot: Invalid value: "y": strconv.Atoi: parsing "y": invalid syntax, tailLines: Invalid value: "x": strconv.Atoi: parsing "x": invalid syntax]` + "\n",
		"GET /logs/?query=a&tailLines=-1":                    "406 tailLines: Invalid value: -1: must be between 0 and 100000, inclusive\n",
		"GET /logs/?query=a&tailLines=100001":                "406 tailLines: Invalid value: 100001: must be between 0 and 100000, inclusive\n",
		"GET /logs/?query=a&boot=1":                          "406 boot: Invalid value: 1: must be less than 1\n",
		"GET /logs/?query=a&sinceTime=x":                     `400 sinceTime: Invalid value: "x": invalid time format` + "\n",
		"GET /logs/?query=a&pattern=(":                       "406 pattern: Invalid value: \"(\": error parsing regexp: missing closing ): `(`\n",
		"GET /logs/?query=a%3Bls":                            `406 query: Invalid value: "a;ls": input contains unsupported characters` + "\n",
		"GET /logs/?query=a&query=b&query=c&query=d&query=e": "406 query: Too many: 5: must have at most 4 items\n",
		"GET /logs/?query=a&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z": "406 untilTime: Invalid value: \"2026-01-01T00:00:00Z\": must be after `sinceTime`\n",
		"GET /logs/app.log?query=a": "406 path not allowed in query mode\n",
		"GET /logs/app.log?since=1": "200 app text",
		"GET /logs/pipe":            "500 500 Internal Server Error\n",
	})
	if code, body, _ := n.get("GET", "/logs/?query="+strings.Repeat("a", maxServiceName+1), n.credentials()["admin cert"]); code != 406 || !strings.Contains(body, "length must be less than 256") {
		t.Errorf("long name: %d %s", code, body)
	}
}

func TestNodeLogQueryIsDisabledByDefault(t *testing.T) {
	n := start(t, true, func(c *Config, _ *Deps) { c.SystemLogDir = t.TempDir() })
	if code, body, _ := n.get("GET", "/logs/?query=kubelet", n.credentials()["admin cert"]); code != 200 || !strings.Contains(body, "<pre>") {
		t.Errorf("query while disabled: %d %s, want the directory", code, body)
	}
}

func FuzzNodeLogQuery(f *testing.F) {
	f.Add("query=kubelet&tailLines=5&boot=-1&pattern=x")
	f.Add("query=a&query=/b&sinceTime=2026-11-15T00:00:00Z&untilTime=2026-11-15T00:00:00%2B01:00")
	f.Add("query=..%2f..%2fetc%2fpasswd")
	dir, outside := f.TempDir(), f.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		f.Fatal(err)
	}
	logs := logDir{dir}
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q, errs := parseNodeLogQuery(query)
		if q == nil || len(errs) > 0 || len(q.validate(logs)) > 0 {
			return
		}
		if len(q.services) == 0 && len(q.files) != 1 || len(q.services) > maxQueriedServices {
			t.Fatalf("%q became %+v", text, q)
		}
		for _, arg := range q.journalArgs(q.services) {
			name, _, _ := strings.Cut(arg, "=")
			if !slices.Contains([]string{"--utc", "--no-pager", "--output", "--since", "--until", "--pager-end", "--lines", "--unit", "--grep", "--boot"}, name) {
				t.Errorf("%q made the argument %q", text, arg)
			}
		}
		if q.tail != nil && (*q.tail < 0 || *q.tail > maxTailLines) || q.boot != nil && *q.boot > 0 || q.since != nil && q.until != nil && q.since.After(*q.until) {
			t.Errorf("%q became %+v", text, q)
		}
	})
}

// FuzzLogDir searches for a path that leads out of the log directory.
func FuzzLogDir(f *testing.F) {
	dir, outside := f.TempDir(), f.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "shadow"), []byte("secret"), 0o600); err != nil {
		f.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		f.Fatal(err)
	}
	for link, target := range map[string]string{
		"out": outside, "a/up": "../../" + filepath.Base(outside), "a/b/here": dir, "loop": "loop", "a/b/file": outside + "/shadow",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			f.Fatal(err)
		}
	}
	for _, path := range []string{"a/b", "out/shadow", "a/up/shadow", "a/b/here/a/b/file", "../" + filepath.Base(outside) + "/shadow", "loop", "", "/", "a/b/here/../../out/shadow"} {
		f.Add(path)
	}
	outsideInfo, err := os.Stat(outside)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path string) {
		file, err := logDir{dir}.Open(path)
		if err != nil {
			return
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if !info.IsDir() || os.SameFile(info, outsideInfo) { // the directory contains no regular file
			t.Errorf("%q leads outside, to %s", path, info.Name())
		}
	})
}
