package source

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
)

func TestDecode(t *testing.T) {
	one := "{apiVersion: v1, kind: Pod, metadata: {name: a}}"
	for name, tc := range map[string]struct {
		text     string
		pods     string
		warnings int
		err      string
	}{
		"one pod":                    {one, "a", 0, ""},
		"several documents":          {"# top\n---\n" + one + "\n---\n\n---\n" + strings.Replace(one, "a}", "b}", 1), "a b", 0, ""},
		"JSON":                       {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, "a", 0, ""},
		"List":                       {"{apiVersion: v1, kind: List, items: [" + one + "]}", "a", 0, ""},
		"PodList":                    {"{apiVersion: v1, kind: PodList, items: [{metadata: {name: a}}, {metadata: {name: b}}]}", "a b", 0, ""},
		"unknown field":              {"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containerz: []}}", "a", 1, ""},
		"empty file":                 {"", "", 0, "no object found"},
		"only comments":              {"# nothing\n", "", 0, "no object found"},
		"YAML syntax error":          {"apiVersion: v1\nkind: [", "", 0, "document 1: yaml: line 2: did not find expected node content"},
		"second document is invalid": {one + "\n---\nkind: Pod", "", 0, `document 2: apiVersion "" of kind "Pod" is not known here, want v1`},
		"unknown kind":               {"{apiVersion: v1, kind: Service}", "", 0, `document 1: kind "Service" is not known here, want Pod`},
		"unknown group":              {"{apiVersion: apps/v1, kind: Deployment}", "", 0, `document 1: apiVersion "apps/v1" of kind "Deployment" is not known here, want v1`},
		"field of the wrong type":    {"{apiVersion: v1, kind: Pod, metadata: {name: 3}}", "", 0, "document 1: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string"},
		"invalid list item":          {"{apiVersion: v1, kind: List, items: [" + one + ", {kind: X, apiVersion: v1}]}", "", 0, `document 1: item 1: kind "X" is not known here, want Pod`},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := decode([]byte(tc.text))
			if (err == nil) != (tc.err == "") || (err != nil && err.Error() != tc.err) {
				t.Fatalf("error %v, want %s", err, tc.err)
			}
			var names []string
			for _, p := range m.pods {
				names = append(names, p.Name)
			}
			if got := strings.Join(names, " "); got != tc.pods {
				t.Errorf("pods %q, want %q", got, tc.pods)
			}
			if len(m.warnings) != tc.warnings {
				t.Errorf("warnings %q, want %d", m.warnings, tc.warnings)
			}
		})
	}
}

// aliasBombs are manifests of some KiB that would expand to gigabytes.
func aliasBombs() map[string]string {
	nested := "  a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for n := range 12 {
		nested += fmt.Sprintf("  a%d: &a%d [%s]\n", n+1, n+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", n), 9), ", "))
	}
	const head = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n"
	return map[string]string{
		"nested": head + nested,
		"wide":   head + "  t: &t " + strings.Repeat("x", 64<<10) + "\n  all: [" + strings.TrimSuffix(strings.Repeat("*t, ", 2000), ", ") + "]\n",
	}
}

// TestAliasBombs: CVE-2019-11253 by a file and by a URL.
func TestAliasBombs(t *testing.T) {
	for name, text := range aliasBombs() {
		d := newDirectory(t)
		d.write("good.yaml", manifestOf("good", "x"))
		d.write("bomb.yaml", text)
		d.run(d.path, nil)
		d.expect("good=x")
		d.mu.Lock()
		if problems := strings.Join(d.problems, "\n"); !strings.Contains(problems, "the aliases of the document expand to more than") {
			t.Errorf("%s by a file: %q", name, problems)
		}
		d.mu.Unlock()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
		defer server.Close()
		var event string
		h, err := NewHTTP(HTTPConfig{URL: server.URL, NodeName: "node-1", CheckFrequency: time.Hour}, HTTPDeps{
			Out: make(chan pod.Snapshot), Client: server.Client(), Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
			OnError: func(_ string, err error) { event = err.Error() },
		})
		if err != nil {
			t.Fatal(err)
		}
		h.report(h.poll(t.Context()))
		if !strings.Contains(event, "the aliases of the document expand to more than") {
			t.Errorf("%s by a URL: %q", name, event)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(manifestOf("a", "x")))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Secret"}]}`))
	f.Add([]byte("--- \n...\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data)
		if err == nil && len(m.pods)+len(m.configMaps)+len(m.secrets) == 0 {
			t.Error("neither an object nor an error")
		}
	})
}
