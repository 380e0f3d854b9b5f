package conformance

import (
	"slices"
	"strings"
	"testing"

	"swiftlet/test/bed"
)

func TestSmokeTestsHavePassed(t *testing.T) {
	// A test with a recorded result is selected.
	results, err := readResults("results/" + string(bed.Ours) + ".tsv")
	if err != nil {
		t.Fatal(err)
	}
	tests := Smoke()
	if len(tests) < 20 {
		t.Errorf("there are %d tests; want 20 or more", len(tests))
	}
	for i, test := range tests {
		if results[test].state != passed {
			t.Errorf("%q has not passed before", test)
		}
		if slices.Contains(tests[:i], test) {
			t.Errorf("%q is listed twice", test)
		}
	}
	for _, part := range []string{"[sig-node] ", "[sig-storage] ", "[sig-network] "} {
		if !slices.ContainsFunc(tests, func(test string) bool { return strings.HasPrefix(test, part) }) {
			t.Errorf("there is no test of %s", part)
		}
	}
}

func TestCheckAllReportsTestsNotRun(t *testing.T) {
	outcomes := []Outcome{{Test: "one", State: passed}, {Test: "two", State: skipped}, {Test: "more", State: failed}}
	if err := CheckAll([]string{"one"}, outcomes); err != nil {
		t.Errorf("CheckAll = %v of a test that passed", err)
	}
	err := CheckAll([]string{"one", "two", "three"}, outcomes)
	const want = "2 of 3 tests did not pass:\nskipped: two\nwas not run: three"
	if err == nil || err.Error() != want {
		t.Errorf("CheckAll = %v, want %s", err, want)
	}
}
