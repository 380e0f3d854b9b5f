package observe

import (
	"testing"
	"time"

	"swiftlet/internal/pod"
)

// FuzzMerge merges events and reads in any order, with any times and repetitions. Each byte triple is one
// observation. A container that has exited never runs again, one that was removed never returns, and a
// complete read that is newer than all else has the last word on what exists.
func FuzzMerge(f *testing.F) {
	f.Add([]byte{0x01, 10, 0x11, 0x02, 20, 0x12, 0x81, 30, 0x10})
	f.Add([]byte{0x83, 1, 0xff, 0x03, 0, 0x00})
	f.Fuzz(func(t *testing.T, steps []byte) {
		r, removed := newRecord(pod.Ref{UID: "u"}), map[string]time.Time{}
		exited := map[string]bool{}
		for n := 0; n+2 < len(steps); n += 3 {
			s := observationFrom(steps[n], steps[n+1], steps[n+2])
			now := at(int64(300 + n))
			r.merge(s, now, removed)
			for _, c := range r.view.Containers {
				if _, gone := removed[c.ID]; gone {
					t.Fatalf("container %s returned after it was removed", c.ID)
				}
				if exited[c.ID] && c.State != pod.Exited {
					t.Fatalf("container %s is %v after it had exited", c.ID, c.State)
				}
				exited[c.ID] = exited[c.ID] || c.State == pod.Exited
			}
		}
		// A complete read of nothing, which begins after everything, leaves nothing.
		r.merge(observation{ref: r.ref, at: at(1 << 40), complete: true}, at(1<<40+1), removed)
		if len(r.view.Containers)+len(r.view.Sandboxes) > 0 {
			t.Errorf("after a read of nothing: %+v", r.view)
		}
	})
}

// observationFrom makes an observation: kind has one bit per container and whether it is complete, when is
// its time, states has two bits per container.
func observationFrom(kind, when, states byte) observation {
	s := observation{ref: pod.Ref{UID: "u"}, at: at(int64(when)), complete: kind&0x80 != 0, sandboxes: []pod.Sandbox{sb("sb", kind&0x40 == 0)}}
	for i, id := range []string{"a", "b", "c", "d"} {
		if kind&(1<<i) != 0 {
			s.containers = append(s.containers, ctr(id, []pod.ContainerState{pod.Created, pod.Running, pod.Exited, pod.Unknown}[states>>(2*i)&3]))
		}
	}
	return s
}
