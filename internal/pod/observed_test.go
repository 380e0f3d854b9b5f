package pod

import (
	"testing"
	"time"
)

func TestCurrentAndStrays(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	running := func(id, sandbox string, restarts, created int) Container {
		return Container{ID: id, SandboxID: sandbox, Name: "c", RestartCount: restarts, State: Running, CreatedAt: at(created)}
	}
	ended := func(c Container) Container { c.State = Exited; return c }
	old, now := Sandbox{ID: "old", Attempt: 0, CreatedAt: at(10)}, Sandbox{ID: "now", Attempt: 1, CreatedAt: at(20)}
	for name, c := range map[string]struct {
		containers      []Container
		current, strays string
	}{
		"none":                                {},
		"in the newest sandbox":               {[]Container{running("a", "now", 0, 21)}, "a", ""},
		"in an earlier one":                   {[]Container{running("a", "old", 0, 11)}, "", "a"},
		"the clock was set back":              {[]Container{running("a", "now", 0, 5)}, "a", ""},
		"and a restart followed":              {[]Container{ended(running("a", "now", 0, 30)), running("b", "now", 1, 5)}, "b", ""},
		"an earlier instance that still runs": {[]Container{running("a", "now", 0, 21), running("b", "now", 1, 22)}, "b", "a"},
		"an earlier sandbox, later by clock":  {[]Container{running("a", "old", 0, 30)}, "", "a"},
		"sandbox unknown, made later":         {[]Container{running("a", "", 0, 21)}, "a", ""},
		"sandbox unknown, made earlier":       {[]Container{running("a", "", 0, 11)}, "", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Observed{Sandboxes: []Sandbox{old, now}, Containers: c.containers}
			o.Sort()
			current, strays := "", ""
			if latest := o.Current("c"); latest != nil {
				current = latest.ID
			}
			for _, s := range o.Strays() {
				strays += s.ID
			}
			if current != c.current || strays != c.strays {
				t.Errorf("current %q, strays %q, want %q and %q", current, strays, c.current, c.strays)
			}
		})
	}
}
