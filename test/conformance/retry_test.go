package conformance

import (
	"reflect"
	"slices"
	"testing"
)

func TestRetryOfDifferingTests(t *testing.T) {
	all := map[Side][]Outcome{
		Ours:      {{Test: "late", State: failed}, {Test: "broken", State: failed}, {Test: "fine", State: passed}, {Test: "only here", State: passed}},
		Reference: {{Test: "late", State: passed}, {Test: "broken", State: failed}, {Test: "fine", State: passed}},
	}
	if got := testsToRetry(Kubelets, all); !slices.Equal(got, []string{"late"}) {
		t.Errorf("testsToRetry = %q, want late", got)
	}
	got := mergeRetries(all[Ours], []Outcome{{Test: "late", State: passed, Seconds: 2}, {Test: "fine", State: passed, Seconds: 3}, {Test: "unasked", State: passed}})
	want := []Outcome{{Test: "late", State: passed, First: failed, Seconds: 2}, {Test: "broken", State: failed}, {Test: "fine", State: passed, Seconds: 3}, {Test: "only here", State: passed}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("mergeRetries = %+v\nwant %+v", got, want)
	}
	if all[Ours][0].State != failed {
		t.Error("mergeRetries changed the first outcomes")
	}
}
