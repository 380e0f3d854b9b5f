package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRecordReplacesEarlierOutcome(t *testing.T) {
	p := &Programs{Root: t.TempDir(), Release: "v1.37.1"}
	first := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	classified := Classification{Run: []string{"one|1", "two", "three"}}
	record := func(side Side, day time.Time, outcomes ...Outcome) {
		t.Helper()
		if err := Record(p, Kubelets, side, outcomes, classified, day); err != nil {
			t.Fatal(err)
		}
	}
	record(Reference, first, Outcome{Test: "one|1", State: passed, Seconds: 1}, Outcome{Test: "two", State: passed, Seconds: 2})
	record(Ours, first, Outcome{Test: "one|1", State: failed, Seconds: 3})
	if text := readReportOf(t, p); !strings.Contains(text, "1 pass on the reference and not on ours, and 0 the other way round") {
		t.Errorf("report does not count the test that only the reference passes:\n%s", text)
	}
	record(Ours, first.AddDate(0, 0, 1), Outcome{Test: "one|1", State: passed, Seconds: 1.26})

	results, err := os.ReadFile(p.results(Ours))
	if want := "passed\t1.3\t2026-01-03\tone|1\n"; err != nil || string(results) != want {
		t.Errorf("results are %q, %v; want %q", results, err, want)
	}
	again := Outcome{Test: "two", First: failed, State: passed, Seconds: 4}
	record(Ours, first.AddDate(0, 0, 1), again)
	results, err = os.ReadFile(p.results(Ours))
	if want := "failed, then passed\t4.0\t2026-01-03\ttwo\n"; err != nil || !strings.Contains(string(results), want) {
		t.Errorf("results are %q, %v; want %q", results, err, want)
	}
	if changes, same, err := p.Changes(Ours, []Outcome{again}); err != nil || same != 1 || len(changes) != 0 {
		t.Errorf("Changes of a second try = %v, %d the same, %v; want one the same", changes, same, err)
	}
	text := readReportOf(t, p)
	for _, want := range []string{
		"tests, v1.37.1, on",
		"| passed | 2 | 2 |",
		"| passed at the second try, of those | 0 | 1 |",
		"| one\\|1 | passed, 1 s | passed, 1 s |",
		"| two | passed, 2 s | passed at the second try, 4 s |",
		"| selected and not run yet | 1 | 1 |",
		"| three |  |  |",
		"0 pass on the reference and not on ours",
		"None of those that were run.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("report lacks %q:\n%s", want, text)
		}
	}
}

func readReportOf(t *testing.T, p *Programs) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.Root, "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestChangesListsDifferencesFromRecord(t *testing.T) {
	p := &Programs{Root: t.TempDir()}
	before := []Outcome{{Test: "b", State: passed}, {Test: "a", State: failed}, {Test: "same", State: skipped}, {Test: "not run now", State: passed}}
	classified := Classification{Run: []string{"a", "b", "same", "not run now"}}
	if err := Record(p, Kubelets, Ours, before, classified, time.Now()); err != nil {
		t.Fatal(err)
	}
	changes, same, err := p.Changes(Ours, []Outcome{{Test: "b", State: failed}, {Test: "a", State: passed}, {Test: "same", State: skipped}, {Test: "new", State: passed}})
	want := []Change{{"a", failed, passed}, {"b", passed, failed}}
	if err != nil || same != 1 || !slices.Equal(changes, want) {
		t.Errorf("Changes = %v, %d the same, %v; want %v, 1 the same", changes, same, err, want)
	}
	if changes, same, err := p.Changes(Reference, before); err != nil || same != 0 || len(changes) != 0 {
		t.Errorf("without a record: %v, %d the same, %v; want nothing", changes, same, err)
	}
}

func TestReadResultsErrorHasLineNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ours.tsv")
	if err := os.WriteFile(path, []byte("passed\t1.0\t2026-01-02\tone\npassed\tsoon\t2026-01-02\ttwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readResults(path); err == nil || !strings.Contains(err.Error(), "ours.tsv:2") {
		t.Errorf("readResults = %v; want an error that names line 2", err)
	}
}
