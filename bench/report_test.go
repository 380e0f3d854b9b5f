package bench

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = flag.Bool("update", false, "write the golden files")

// sampleResult has rows of every kind: all subjects, some, one; goals reached, not reached, unknown.
func sampleResult() *Result {
	samples := newRecorder()
	for round := 1; round <= 3; round++ {
		shift := 0.01 * float64(round)
		for subject, value := range map[string]float64{Bare: 0.19, Reference: 0.27, Ours: 0.20} {
			samples.add("start_one", subject, round, value+shift)
		}
		samples.add("start_60", Ours, round, 9.2+shift)
		samples.add("idle_cpu_60", Reference, round, 0.039+shift/100)
		samples.add("idle_cpu_60", Ours, round, 0.0003+shift/1000)
		samples.add("rss_60", Ours, round, 72)
		samples.add("rss_60", Reference, round, 119)
		samples.add("log_lost", Ours, round, 0)
	}
	about := About{
		Date: time.Date(2026, 11, 18, 6, 30, 0, 0, time.UTC), Commit: "0123456789ab", Rounds: 3,
		Machine:  Machine{CPU: "Example CPU", Cores: 2, Memory: 8, Kernel: "6.18.44"},
		Versions: map[string]string{"reference": "v1.37.1", "apiserver": "v1.37.1", "containerd": "v2.4.2", "runc": "1.5.0", "swiftlet": "0123456", "go": "go1.26"},
	}
	return newResult(about, samples, []string{"crash, ours, round 2: interrupted"}, 40*time.Minute)
}

func TestReports(t *testing.T) {
	r := sampleResult()
	golden(t, "table.md", r.full())
	golden(t, "front.md", r.front())
	golden(t, "times.svg", r.SVG(Charts[0]))
}

func TestJSON(t *testing.T) {
	want := sampleResult()
	file, err := want.WriteJSON(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(RowResult{}), cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Errorf("(-written +read):\n%s", d)
	}
	if name := filepath.Base(file); name != "20261118-0630-0123456789ab.json" {
		t.Errorf("the file is %s", name)
	}
}

func TestPublish(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"README.md", "docs/performance.md"} {
		if err := os.WriteFile(filepath.Join(root, file), []byte("before\n"+beginMark+"\nold\n"+endMark+"\nafter\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := sampleResult()
	for range 2 { // again: nothing is written twice
		if err := r.Publish(root); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	want := "before\n" + beginMark + "\n\n" + r.front() + "\n" + endMark + "\nafter\n"
	if err != nil || string(text) != want {
		t.Errorf("README.md is %q: %v", text, err)
	}
	if err := os.WriteFile(filepath.Join(root, "README.md"), []byte("no marks"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.Publish(root); err == nil {
		t.Error("no error for a file without marks")
	}
}

func TestNumber(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 0.0003: "0.00030", 0.1944: "0.194", 1.5: "1.50", 12.34: "12.3", 119.4: "119", 12345: "12345"} {
		if got := Number(value); got != want {
			t.Errorf("%v: %s, want %s", value, got, want)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}
