package cves

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// guard is a line of guards.tsv.
type guard struct{ cve, packagePath, tests, removed string }

func guards(t *testing.T) []guard {
	t.Helper()
	text, err := os.ReadFile("guards.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var all []guard
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.TrimSpace(line), "\t"); !strings.HasPrefix(line, "#") {
			if len(cells) != 4 {
				t.Fatalf("line %q has %d cells, want 4", line, len(cells))
			}
			all = append(all, guard{cells[0], cells[1], cells[2], cells[3]})
		}
	}
	return all
}

// Patches that no longer apply would leave a guard untested.
func TestPatchesApply(t *testing.T) {
	for _, g := range guards(t) {
		patch := "test/cves/" + g.cve + ".patch"
		check := exec.CommandContext(t.Context(), "patch", "--dry-run", "-s", "-p1", "-i", patch)
		check.Dir = "../.."
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s does not apply: %v\n%s", patch, err, out)
		}
	}
}

func TestTestsExist(t *testing.T) {
	for _, g := range guards(t) {
		files, err := filepath.Glob(filepath.Join("../..", g.packagePath, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var code strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
		for test := range strings.SplitSeq(g.tests, "|") {
			if !strings.Contains(code.String(), "\nfunc "+strings.TrimSuffix(test, "$")+"(") {
				t.Errorf("%s: %s has no test %s", g.cve, g.packagePath, test)
			}
		}
	}
}

// Every guard is in the table of SECURITY.md, and every CVE there has a guard.
func TestTableIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (CVE-\d+-\d+) \|`).FindAllStringSubmatch(string(text), -1) {
		listed[m[1]] = true
	}
	for _, g := range guards(t) {
		if !listed[g.cve] {
			t.Errorf("SECURITY.md does not list %s", g.cve)
		}
		delete(listed, g.cve)
	}
	for cve := range listed {
		t.Errorf("%s of SECURITY.md has no line in guards.tsv", cve)
	}
}
