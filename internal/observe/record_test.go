package observe

import (
	"testing"
	"time"

	"swiftlet/internal/pod"
)

func at(n int64) time.Time { return time.Unix(n, 0) }

// ctr and sb make the parts of an observation.
func ctr(id string, state pod.ContainerState) containerEntry {
	return containerEntry{Container: pod.Container{ID: id, Name: id, State: state}, sandbox: "sb"}
}

func sb(id string, ready bool) pod.Sandbox { return pod.Sandbox{ID: id, Ready: ready} }

func TestMerge(t *testing.T) {
	event := func(n int64, containers ...containerEntry) observation {
		return observation{ref: pod.Ref{UID: "u"}, at: at(n), sandboxes: []pod.Sandbox{sb("sb", true)}, containers: containers}
	}
	read := func(n int64, containers ...containerEntry) observation {
		s := event(n, containers...)
		s.complete = true
		return s
	}
	for _, test := range []struct {
		name      string
		before    []observation // the i-th is merged at time 10*(i+1)
		next      observation   // merged at time 100
		removed   []string      // removed before the next observation
		want      map[string]pod.ContainerState
		changed   bool
		needsRead bool
	}{
		{
			name: "new pod", next: event(50, ctr("a", pod.Running)),
			want: map[string]pod.ContainerState{"a": pod.Running}, changed: true,
		},
		{
			name: "repeated event", before: []observation{event(10, ctr("a", pod.Running))}, next: event(10, ctr("a", pod.Running)),
			want: map[string]pod.ContainerState{"a": pod.Running},
		},
		{
			name: "container exits", before: []observation{event(10, ctr("a", pod.Running))}, next: event(20, ctr("a", pod.Exited)),
			want: map[string]pod.ContainerState{"a": pod.Exited}, changed: true,
		},
		{
			name: "exit in an event older than the last read", before: []observation{read(30, ctr("a", pod.Running))}, next: event(20, ctr("a", pod.Exited)),
			want: map[string]pod.ContainerState{"a": pod.Exited}, changed: true,
		},
		{
			name: "late event does not revive an exited container", before: []observation{event(10, ctr("a", pod.Exited))}, next: event(20, ctr("a", pod.Running)),
			want: map[string]pod.ContainerState{"a": pod.Exited},
		},
		{
			name: "running container becomes unknown", before: []observation{event(10, ctr("a", pod.Running))}, next: event(20, ctr("a", pod.Unknown)),
			want: map[string]pod.ContainerState{"a": pod.Unknown}, changed: true,
		},
		{
			name: "state in an event older than the last read", before: []observation{read(30, ctr("a", pod.Running))}, next: event(20, ctr("a", pod.Unknown)),
			want: map[string]pod.ContainerState{"a": pod.Running},
		},
		{
			name: "removed container does not return", before: []observation{event(10, ctr("a", pod.Running))}, removed: []string{"b"},
			next: event(20, ctr("a", pod.Running), ctr("b", pod.Exited)),
			want: map[string]pod.ContainerState{"a": pod.Running},
		},
		{
			name: "container missing in an event must be read", before: []observation{event(10, ctr("a", pod.Running), ctr("b", pod.Created))},
			next: event(20, ctr("a", pod.Running)),
			want: map[string]pod.ContainerState{"a": pod.Running, "b": pod.Created}, needsRead: true,
		},
		{
			name: "container missing in a read is removed", before: []observation{event(10, ctr("a", pod.Running), ctr("b", pod.Exited))},
			next: read(20, ctr("a", pod.Running)),
			want: map[string]pod.ContainerState{"a": pod.Running}, changed: true,
		},
		{
			name: "container first observed after the read began is kept", before: []observation{event(10, ctr("a", pod.Running), ctr("b", pod.Created))},
			next: read(9, ctr("a", pod.Running)),
			want: map[string]pod.ContainerState{"a": pod.Running, "b": pod.Created},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, removed := newRecord(pod.Ref{UID: "u"}), map[string]time.Time{}
			for i, s := range test.before {
				r.merge(s, at(int64(10*(i+1))), removed)
			}
			for _, id := range test.removed {
				r.remove(id, at(90), removed)
			}
			changed, needsRead := r.merge(test.next, at(100), removed)
			if changed != test.changed || needsRead != test.needsRead {
				t.Errorf("changed %v, doubtful %v; want %v, %v", changed, needsRead, test.changed, test.needsRead)
			}
			got := map[string]pod.ContainerState{}
			for _, c := range r.view.Containers {
				got[c.ID] = c.State
			}
			if len(got) != len(test.want) {
				t.Errorf("containers %v, want %v", got, test.want)
			}
			for id, state := range test.want {
				if got[id] != state {
					t.Errorf("container %s is %v, want %v", id, got[id], state)
				}
			}
		})
	}
}

func TestMergeSandboxes(t *testing.T) {
	for _, test := range []struct {
		name        string
		known, seen bool
		newer       bool
		want        bool
	}{
		{"stays ready", true, true, true, true},
		{"becomes not ready", true, false, true, false},
		{"not ready in an event older than the last read", true, false, false, false},
		{"does not become ready again", false, true, true, false},
	} {
		r, removed := newRecord(pod.Ref{}), map[string]time.Time{}
		r.merge(observation{at: at(10), sandboxes: []pod.Sandbox{sb("sb", test.known)}}, at(10), removed)
		when := at(5)
		if test.newer {
			when = at(20)
		}
		r.merge(observation{at: when, sandboxes: []pod.Sandbox{sb("sb", test.seen)}}, at(30), removed)
		if got := r.view.Sandbox().Ready; got != test.want {
			t.Errorf("%s: ready %v, want %v", test.name, got, test.want)
		}
	}
}

func TestRemovedSandboxWithContainersMustBeRead(t *testing.T) {
	r, removed := newRecord(pod.Ref{}), map[string]time.Time{}
	r.merge(observation{
		at: at(1), complete: true, sandboxes: []pod.Sandbox{sb("sb", false), sb("other", true), sb("empty", false)},
		containers: []containerEntry{ctr("a", pod.Exited), {Container: pod.Container{ID: "b"}, sandbox: "other"}},
	}, at(1), removed)
	for _, test := range []struct {
		id        string
		needsRead bool
	}{{"sb", true}, {"empty", false}, {"b", false}, {"other", false}} {
		if changed, needsRead := r.remove(test.id, at(2), removed); !changed || needsRead != test.needsRead {
			t.Errorf("%s removed: changed %t, doubtful %t", test.id, changed, needsRead)
		}
	}
	if len(r.view.Sandboxes) != 0 || len(r.view.Containers) != 1 || r.view.Containers[0].ID != "a" {
		t.Errorf("left: %+v", r.view)
	}
	if _, ok := removed["a"]; ok {
		t.Error("the container counts as removed without a report of it")
	}
}
