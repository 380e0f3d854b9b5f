package scale

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func sample() *Result {
	r := &Result{Commit: "abc", Runs: []*Run{
		{
			Spec: Spec{Kind: Kubemark, Nodes: 100, PodsPerNode: 10}, Values: map[string]float64{"pod_requests": 4, "pod_bytes": 15000, "node_pss": 60e6},
			Requests: map[string]map[string]float64{"pod": {"get pods": 1, "patch pods/status": 2, "rare": 0.001}},
		},
		{
			Spec: Spec{Kind: Separate, Nodes: 100, PodsPerNode: 10}, Values: map[string]float64{"pod_requests": 2, "pod_bytes": 10000, "node_pss": 15e6},
			Requests: map[string]map[string]float64{"pod": {"patch pods/status": 1}},
		},
		{Spec: Spec{Kind: Together, Nodes: 1000, PodsPerNode: 30}, Values: map[string]float64{"lease_max": 11}},
	}}
	r.Finish()
	return r
}

func TestMarkdown(t *testing.T) {
	const want = `|  | kubemark: 100 × 10 pods | Swiftlet: 100 × 10 pods | Swiftlet, one process: 1000 × 30 pods |
|---|---|---|---|
| requests per pod | 4.00 | 2.00 | – |
| bytes per pod | 15.0 kB | 10.0 kB | – |
| memory per node (PSS) | 60.0 MB | 15.0 MB | – |
| lease renewed late by, most | – | – | 11.0 s |
`
	if got := sample().Markdown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRequestTable(t *testing.T) {
	const want = `|  | kubemark: 100 × 10 pods | Swiftlet: 100 × 10 pods |
|---|---|---|
| patch pods/status | 2.00 | 1.00 |
| get pods | 1.00 | 0 |
`
	if got := sample().RequestTable("pod"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := sample().RequestTable("outage"); got != "" {
		t.Errorf("a phase that was not measured: %s", got)
	}
}

func TestOutcomes(t *testing.T) {
	r := sample()
	reached := map[string]bool{}
	for _, o := range r.Outcomes {
		title, _, _ := strings.Cut(o.Text, ",")
		reached[title] = o.Reached
	}
	want := map[string]bool{"requests per pod": true, "bytes per pod": false, "memory per node (PSS)": true, "lease renewed late by": false}
	if len(reached) != len(want) {
		t.Errorf("got %v, want %v", r.Outcomes, want)
	}
	for title, is := range want {
		if got, ok := reached[title]; !ok || got != is {
			t.Errorf("%s: reached is %v and measured %v, want %v", title, got, ok, is)
		}
	}
	if err := r.Err(); err == nil || strings.Contains(err.Error(), "requests per pod") || !strings.Contains(err.Error(), "bytes per pod") {
		t.Errorf("the error is %v", err)
	}
}

func TestPublishKeepsTheRestOfTheDocument(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "docs", "performance.md")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("before\n"+beginMark+"\nold\n"+endMark+"\nafter\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := sample().Publish(root); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if !strings.HasPrefix(got, "before\n"+beginMark) || !strings.HasSuffix(got, endMark+"\nafter\n") ||
		strings.Contains(got, "old") || !strings.Contains(got, "| requests per pod |") {
		t.Errorf("the document is\n%s", got)
	}
}

func TestResultIsReadAsWritten(t *testing.T) {
	r := sample()
	path, err := r.WriteJSON(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadJSON(path)
	if err != nil || again.Markdown() != r.Markdown() || again.Goals() != r.Goals() {
		t.Errorf("read %v and %v", again, err)
	}
}
