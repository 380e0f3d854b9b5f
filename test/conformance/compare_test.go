package conformance

import (
	"reflect"
	"testing"
)

func TestCompareListsDifferences(t *testing.T) {
	ours := []Outcome{
		{Test: "b", State: failed, Message: "too late", Output: "waited"},
		{Test: "same", State: passed},
		{Test: "both", State: failed, Message: "here"},
		{Test: "a", State: passed},
	}
	reference := []Outcome{
		{Test: "both", State: failed, Message: "there"},
		{Test: "a", State: failed, Message: "crashed"},
		{Test: "same", State: passed},
		{Test: "b", State: passed},
		{Test: "c", State: passed},
	}
	want := []Difference{
		{Test: "a", Ours: passed, Reference: failed, Message: "crashed"},
		{Test: "b", Ours: failed, Reference: passed, Message: "too late", Output: "waited"},
		{Test: "c", Reference: passed},
	}
	got := Compare(ours, reference)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("Compare = %+v\nwant %+v", got, want)
	}
	for i, defect := range []bool{false, true, true} {
		if got[i].Defect() != defect {
			t.Errorf("Defect of %s = %v, want %v", got[i].Test, !defect, defect)
		}
	}
}
