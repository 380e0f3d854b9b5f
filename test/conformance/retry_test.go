package conformance

import (
	"reflect"
	"slices"
	"testing"

	"swiftlet/test/bed"
)

func TestRetryOfDifferingTests(t *testing.T) {
	all := map[bed.KubeletKind][]Outcome{
		bed.Ours:      {{Test: "late", State: failed}, {Test: "broken", State: failed}, {Test: "fine", State: passed}, {Test: "only here", State: passed}},
		bed.Reference: {{Test: "late", State: passed}, {Test: "broken", State: failed}, {Test: "fine", State: passed}},
	}
	if got := testsToRetry(all); !slices.Equal(got, []string{"late"}) {
		t.Errorf("testsToRetry = %q, want late", got)
	}
	got := mergeRetries(all[bed.Ours], []Outcome{{Test: "late", State: passed, Seconds: 2}, {Test: "fine", State: passed, Seconds: 3}, {Test: "unasked", State: passed}})
	want := []Outcome{{Test: "late", State: passed, First: failed, Seconds: 2}, {Test: "broken", State: failed}, {Test: "fine", State: passed, Seconds: 3}, {Test: "only here", State: passed}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("mergeRetries = %+v\nwant %+v", got, want)
	}
	if all[bed.Ours][0].State != failed {
		t.Error("mergeRetries changed the first outcomes")
	}
}
