package volume

import (
	"slices"
	"testing"
	"time"
)

func TestRefreshSchedule(t *testing.T) {
	var table refreshSchedule
	base := time.Unix(0, 0)
	at := func(s int) time.Time { return base.Add(time.Duration(s) * time.Second) }
	key := func(name string) volumeKey { return volumeKey{pod: "uid", volume: name} }
	table.set(key("c"), at(3))
	table.set(key("a"), at(1))
	table.set(key("b"), at(2))
	table.set(key("d"), at(4))
	table.set(key("c"), at(1)) // moved forward
	table.set(key("a"), at(9)) // put off
	table.remove(key("b"))
	table.remove(key("never there"))
	if first, ok := table.first(); !ok || !first.Equal(at(1)) {
		t.Errorf("first at %v", first)
	}
	if got := table.popDue(at(0)); got != nil {
		t.Errorf("due too early: %v", got)
	}
	if got := table.popDue(at(4)); !slices.Equal(got, []volumeKey{key("c"), key("d")}) {
		t.Errorf("due at 4: %v", got)
	}
	if got := table.popDue(at(100)); !slices.Equal(got, []volumeKey{key("a")}) {
		t.Errorf("due at 100: %v", got)
	}
	if _, ok := table.first(); ok {
		t.Error("something is left")
	}
}
