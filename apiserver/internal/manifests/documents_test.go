package manifests

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		content   string
		documents []string // line, kind and name
		problems  []string // line and message
	}{
		"two_documents":             {"kind: A\nmetadata: {name: a}\n---\nkind: B\nmetadata: {name: b}\n", []string{"1 A a", "3 B b"}, nil},
		"comments_and_empty_ones":   {"# nothing\n---\n---\n# one\nkind: A\nmetadata: {name: a}\n---\n", []string{"3 A a"}, nil},
		"JSON":                      {`{"kind": "A", "metadata": {"name": "a"}}`, []string{"1 A a"}, nil},
		"marker_with_content":       {"--- # first\nkind: A\nmetadata: {name: a}\n", []string{"1 A a"}, nil},
		"dashes_are_no_marker":      {"kind: A\nmetadata: {name: a}\ndata: |\n  ---\n  x\n----: 1\n", []string{"1 A a"}, nil},
		"CRLF":                      {"kind: A\r\nmetadata: {name: a}\r\n---\r\nkind: B\r\nmetadata: {name: b}\r\n", []string{"1 A a", "3 B b"}, nil},
		"second_has_wrong_syntax":   {"kind: A\nmetadata: {name: a}\n---\nkind: B\nx: [\n---\nkind: C\nmetadata: {name: c}\n", []string{"1 A a", "6 C c"}, []string{"5 did not find expected node content"}},
		"duplicate_key":             {"---\nkind: A\nmetadata: {name: a}\nkind: B\n", nil, []string{`4 key "kind" already set in map`}},
		"no_kind":                   {"metadata: {name: a}\n", nil, []string{"1 Object 'Kind' is missing"}},
		"no_name":                   {"---\nkind: A\n", nil, []string{"1 metadata.name is missing"}},
		"not_an_object":             {"just text\n", nil, []string{"1 "}},
		"list":                      {"---\napiVersion: v1\nkind: List\nitems:\n- kind: A\n  metadata: {name: a}\n- kind: B\n  metadata:\n    name: b\n", []string{"5 A a", "7 B b"}, nil},
		"list_with_item_of_nothing": {"apiVersion: v1\nkind: List\nitems: [5]\n", nil, []string{"1 items"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := files{broken: map[string]bool{}}
			all.parse("f.yaml", []byte(c.content))
			var documents []string
			for _, d := range all.documents {
				documents = append(documents, fmt.Sprintf("%d %s %s", d.line, d.object.GetKind(), d.object.GetName()))
			}
			if !slices.Equal(documents, c.documents) {
				t.Errorf("documents: got %q, want %q", documents, c.documents)
			}
			if len(all.problems) != len(c.problems) {
				t.Fatalf("problems: got %+v, want %q", all.problems, c.problems)
			}
			for i, p := range all.problems {
				if got := fmt.Sprintf("%d %s", p.Line, p.Message); !strings.HasPrefix(got, c.problems[i]) {
					t.Errorf("problem: got %q, want %q", got, c.problems[i])
				}
			}
			if all.broken["f.yaml"] != (len(c.problems) > 0) {
				t.Errorf("the file counts as broken: %t", all.broken["f.yaml"])
			}
		})
	}
}

func TestLineOf(t *testing.T) {
	all := files{broken: map[string]bool{}}
	all.parse("f.yaml", []byte(`kind: First
metadata: {name: first}
---
kind: Pod
metadata:
  name: web
  labels:
    a.b/c: x
spec:
  containers:
  - name: one
    image: x
  - name: two
    ports:
    - containerPort: 80
      hostPort: 8080
`))
	for path, want := range map[string]int{
		"kind":                                  4,
		".spec.containers[1].ports[0].hostPort": 16,
		`.spec.containers[name="two"].ports[containerPort=80,protocol="TCP"].hostPort`: 16,
		`.spec.containers[name="two"].imagee`:                                          13,
		"spec.containers[7].image":                                                     10,
		"metadata.labels[a.b/c]":                                                       8,
		"absent.field":                                                                 3,
		"":                                                                             3,
	} {
		if got := all.documents[1].lineOf(path); got != want {
			t.Errorf("%q: got line %d, want %d", path, got, want)
		}
	}
}

func TestReadDirectory(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a.yaml": "kind: A\nmetadata: {name: a}\n", ".hidden.yaml": "x: [", "notes.txt": "x: [", "b.json": `{"kind":"B","metadata":{"name":"b"}}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "c.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	all, err := read(dir)
	if err != nil || len(all.documents) != 2 || len(all.problems) != 0 {
		t.Errorf("got %d documents, problems %v, %v", len(all.documents), all.problems, err)
	}
	if _, err := read(filepath.Join(dir, "absent")); err == nil {
		t.Error("no error for a directory that is missing: everything would be deleted")
	}
}

// TestReadIsBounded: what is no regular file, or has no end, is a problem of its own.
func TestReadIsBounded(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("kind: A\nmetadata: {name: a}\n"), 0o600),
		unix.Mkfifo(filepath.Join(dir, "fifo.yaml"), 0o600),
		os.Symlink("/dev/zero", filepath.Join(dir, "zero.yaml")),
		os.WriteFile(large, nil, 0o600), os.Truncate(large, maxFile+1),
	); err != nil {
		t.Fatal(err)
	}
	result := make(chan files, 1)
	go func() {
		all, err := read(dir)
		if err != nil {
			t.Error(err)
		}
		result <- all
	}()
	select {
	case all := <-result:
		var problems []string
		for _, p := range all.problems {
			problems = append(problems, p.Message)
		}
		want := []string{
			"read " + filepath.Join(dir, "fifo.yaml") + ": not a regular file",
			"read " + large + ": larger than 10485760 bytes",
			"read " + filepath.Join(dir, "zero.yaml") + ": not a regular file",
		}
		if len(all.documents) != 1 || !slices.Equal(problems, want) {
			t.Errorf("%d documents, problems %q, want %q", len(all.documents), problems, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("read does not end")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("kind: A\nmetadata: {name: a}\n---\nkind: List\nitems: [{kind: B}]\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		all := files{broken: map[string]bool{}}
		all.parse("f.yaml", content)
		lines := strings.Count(string(content), "\n") + 1
		for _, d := range all.documents {
			if d.line < 1 || d.line > lines {
				t.Errorf("line %d of %d", d.line, lines)
			}
			if at := d.lineOf("metadata.name"); at < d.line || at > lines {
				t.Errorf("line %d of a field, of %d", at, lines)
			}
		}
	})
}
