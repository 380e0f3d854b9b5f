package runtime

import (
	"strings"
	"testing"
	"time"

	"swiftlet/test/cputime"
)

func TestExpand(t *testing.T) {
	lookup := lookupIn(map[string]string{"A": "1", "B": "$(A)", "EMPTY": "", "a b": "blank"}, map[string]string{"A": "hidden", "S": "service"})
	for text, want := range map[string]string{
		"":              "",
		"plain":         "plain",
		"$(A)":          "1",
		"x$(A)y$(S)z":   "x1yservicez",
		"$(B)":          "$(A)", // values are not expanded again
		"$(EMPTY)":      "",
		"$(NONE)":       "$(NONE)",
		"$$(A)":         "$(A)",
		"$$$(A)":        "$1",
		"$$$$(A)":       "$$(A)",
		"$A":            "$A",
		"${A}":          "${A}",
		"$":             "$",
		"end$":          "end$",
		"$$":            "$",
		"$(A":           "$(A",
		"$(A $(S)":      "$(A $(S)", // up to the first bracket it is one, unknown, name
		"$(a b)":        "blank",
		"$()":           "$()",
		"\xff$(A)\xff$": "\xff1\xff$",
	} {
		if got, err := Expand(text, lookup); got != want || err != nil {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("a$(A)$$b$(")
	f.Fuzz(func(t *testing.T, text string) {
		// Where nothing is found, only doubled dollars may change.
		none := func(string) (string, bool) { return "", false }
		got, err := Expand(text, none)
		if len(got) > len(text) || err != nil {
			t.Errorf("%q grew to %q", text, got)
		}
	})
}

// The time of an expansion grows with the length of the text, not with its square.
func TestExpandOpenReferencesOnce(t *testing.T) {
	const text = "$($$(a)$(b$$"
	if got, err := Expand(text, lookupIn()); err != nil || got != "$($$(a)$(b$" {
		t.Errorf("got %q, %v", got, err)
	}
	open := strings.Repeat("$(", 1<<20)
	cputime.AtMost(t, 5*time.Second, func() {
		if got, err := Expand(open, lookupIn()); err != nil || got != open {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}
