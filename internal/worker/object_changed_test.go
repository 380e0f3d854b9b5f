package worker

import (
	"context"
	"testing"
	"testing/synctest"

	"swiftlet/internal/pod"
)

// A pod that waits for a ConfigMap or Secret is synced at once when one changes, also when
// that happens during the Sync whose outcome is to wait.
func TestObjectChanged(t *testing.T) {
	for name, c := range map[string]struct {
		awaits, duringStep bool
		want               []bool // of each Sync: ObjectsChanged
	}{
		"changed_while_pod_waits":          {awaits: true, want: []bool{false, true}},
		"changed_during_sync_then_waits":   {awaits: true, duringStep: true, want: []bool{false, true}},
		"changed_while_pod_does_not_wait":  {want: []bool{false}},
		"changed_during_sync_without_wait": {duringStep: true, want: []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSteps()
				p := run(t, s)
				var got []bool
				s.on["sync"] = func(_ context.Context, w pod.Work) (pod.Outcome, error) {
					got = append(got, w.ObjectsChanged)
					if c.duringStep && len(got) == 1 {
						p.ObjectChanged("a")
					}
					return pod.Outcome{AwaitsObjects: c.awaits && len(got) == 1}, nil
				}
				p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
				settle()
				if !c.duringStep {
					p.ObjectChanged("a")
					settle()
				}
				p.ObjectChanged("unknown")
				if len(got) != len(c.want) || got[len(got)-1] != c.want[len(c.want)-1] {
					t.Errorf("syncs with objects changed: %v, want %v", got, c.want)
				}
			})
		})
	}
}
