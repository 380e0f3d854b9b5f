package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"swiftlet/internal/config"
)

// skipShort skips tests that read the source of the reference, which has to be downloaded.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("reads the source of the reference kubelet")
	}
}

// reference is our own version of the reference, opened once.
var reference = sync.OnceValues(func() (*upstream, error) { return openUpstream(context.Background(), config.KubernetesVersion) })

// TestOwnVersion: explained.tsv explains every difference from our own version, and nothing else.
func TestOwnVersion(t *testing.T) {
	skipShort(t)
	u, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	differences, stale, err := explained(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	write(&out, u.version, differences, false)
	t.Log(out.String())
	if err := unexplained(differences, stale); err != nil {
		t.Error(err)
	}
}

// TestExtractionIsComplete compares what is read from the source with recordings of the running
// reference kubelet.
func TestExtractionIsComplete(t *testing.T) {
	skipShort(t)
	u, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	found, err := u.lists()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range recording(t, "internal/config/testdata/flags.tsv") {
		kind := strings.TrimSuffix(row[1], "[=true]")
		want := strings.TrimSpace(strings.Join([]string{strings.TrimSpace(kind + " " + row[2]), row[3]}, " "))
		if got := found.items["flag"][row[0]]; got != want {
			t.Errorf("flag %s: read %q, recorded %q", row[0], got, want)
		}
	}
	checkCount(t, found, "flag", len(recording(t, "internal/config/testdata/flags.tsv")))
	for _, row := range recording(t, "test/e2e/testdata/metrics.tsv") {
		checkMetric(t, found, row[0], row[1])
	}
	for _, row := range recording(t, "test/e2e/testdata/golden/events.tsv") {
		if _, ok := found.items["event"][row[1]]; !ok && row[6] == "kubelet" {
			t.Errorf("event %s was recorded, but not read", row[1])
		}
	}
	for kind, least := range map[string]int{"field": 140, "gate": 250, "endpoint": 25, "node": 70} {
		if len(found.items[kind]) < least {
			t.Errorf("%d items of kind %s were read, want %d at least", len(found.items[kind]), kind, least)
		}
	}
}

func checkCount(t *testing.T, found *lists, kind string, want int) {
	t.Helper()
	if got := len(found.items[kind]); got != want {
		t.Errorf("%d items of kind %s were read, %d recorded", got, kind, want)
	}
}

// elsewhere are metrics of the Prometheus library, which is not part of Kubernetes.
var elsewhere = []string{"go_", "process_", "promhttp_", "registered_metrics_total", "disabled_metrics_total", "hidden_metrics_total"}

func checkMetric(t *testing.T, found *lists, name, kind string) {
	t.Helper()
	if slices.ContainsFunc(elsewhere, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return
	}
	got, ok := found.items["metric"][name]
	if !ok || got != "" && got != kind {
		t.Errorf("metric %s: read %q (%t), recorded %q", name, got, ok, kind)
	}
}

// TestGatesOfAnotherVersion: a gate's state is the one of the requested version.
func TestGatesOfAnotherVersion(t *testing.T) {
	skipShort(t)
	u, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	const gate = "MutablePodResourcesForSuspendedJobs"
	older := *u
	older.version = "v1.30.0"
	now := u.gates()[gate]
	if before, ok := older.gates()[gate]; ok || now == "" {
		t.Errorf("a gate of v1.35 is %q in v1.30 and %q now", before, now)
	}
}

func TestStaleExplanation(t *testing.T) {
	entries, err := parseExplanations("# comment\nflag\ta*\twhy\nflag\tb\twhy not\n")
	if err != nil {
		t.Fatal(err)
	}
	differences := []difference{{Kind: "flag", Name: "aa"}, {Kind: "gate", Name: "b"}}
	stale := explain(differences, entries)
	if len(stale) != 1 || stale[0].name != "b" || differences[0].Reason != "why" || differences[1].Reason != "" {
		t.Errorf("stale %+v, differences %+v", stale, differences)
	}
	if _, err := parseExplanations("flag\ta\t\n"); err == nil {
		t.Error("an entry without a reason is accepted")
	}
}

func TestCompare(t *testing.T) {
	theirs := &lists{items: map[string]items{"flag": {"a": "bool", "b": "int", "c": ""}, "event": {"Started": "", "ResizeDone": ""}}}
	ours := &lists{items: map[string]items{"flag": {"b": "string", "c": "", "d": ""}, "event": {"Resize*": ""}}, literals: map[string]bool{"Started": true}}
	var got []string
	for _, d := range compare(theirs, ours) {
		got = append(got, d.Kind+" "+d.Name+" "+d.What)
	}
	if want := "flag a missing here, flag b differs, flag d only here"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}

// recording reads a table of the repository.
func recording(t *testing.T, file string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		rows = append(rows, strings.Split(strings.TrimRight(line, "\n"), "\t"))
	}
	return rows
}
