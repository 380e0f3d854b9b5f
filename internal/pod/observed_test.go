package pod

import (
	"testing"
	"time"
)

func TestCurrentAndSuperseded(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	running := func(id, sandbox string, restarts, created int) Container {
		return Container{ID: id, SandboxID: sandbox, Name: "c", RestartCount: restarts, State: Running, CreatedAt: at(created)}
	}
	ended := func(c Container) Container { c.State = Exited; return c }
	old, now := Sandbox{ID: "old", Attempt: 0, CreatedAt: at(10)}, Sandbox{ID: "now", Attempt: 1, CreatedAt: at(20)}
	for name, c := range map[string]struct {
		containers          []Container
		current, superseded string
	}{
		"no container":                                          {},
		"instance in the newest sandbox":                        {[]Container{running("a", "now", 0, 21)}, "a", ""},
		"instance in an earlier sandbox":                        {[]Container{running("a", "old", 0, 11)}, "", "a"},
		"instance older than its sandbox":                       {[]Container{running("a", "now", 0, 5)}, "a", ""},
		"restart after the clock was set back":                  {[]Container{ended(running("a", "now", 0, 30)), running("b", "now", 1, 5)}, "b", ""},
		"older instance still runs":                             {[]Container{running("a", "now", 0, 21), running("b", "now", 1, 22)}, "b", "a"},
		"instance in an earlier sandbox that is newer by clock": {[]Container{running("a", "old", 0, 30)}, "", "a"},
		"unknown sandbox, created after the newest":             {[]Container{running("a", "", 0, 21)}, "a", ""},
		"unknown sandbox, created before the newest":            {[]Container{running("a", "", 0, 11)}, "", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Observed{Sandboxes: []Sandbox{old, now}, Containers: c.containers}
			o.Sort()
			current, superseded := "", ""
			if latest := o.Current("c"); latest != nil {
				current = latest.ID
			}
			for _, s := range o.Superseded() {
				superseded += s.ID
			}
			if current != c.current || superseded != c.superseded {
				t.Errorf("current %q, superseded %q, want %q and %q", current, superseded, c.current, c.superseded)
			}
		})
	}
}
