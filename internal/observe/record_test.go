package observe

import (
	"testing"
	"time"

	"swiftlet/internal/pod"
)

func at(n int64) time.Time { return time.Unix(n, 0) }

// ctr and sb are short forms for what a sighting holds.
func ctr(id string, state pod.ContainerState) member {
	return member{Container: pod.Container{ID: id, Name: id, State: state}, sandbox: "sb"}
}

func sb(id string, ready bool) pod.Sandbox { return pod.Sandbox{ID: id, Ready: ready} }

func TestMerge(t *testing.T) {
	event := func(n int64, containers ...member) sighting {
		return sighting{ref: pod.Ref{UID: "u"}, at: at(n), sandboxes: []pod.Sandbox{sb("sb", true)}, containers: containers}
	}
	reading := func(n int64, containers ...member) sighting {
		s := event(n, containers...)
		s.complete = true
		return s
	}
	for _, test := range []struct {
		name     string
		before   []sighting // the i-th is merged at time 10*(i+1)
		news     sighting   // merged at time 100
		removed  []string   // known to be gone before the news
		want     map[string]pod.ContainerState
		changed  bool
		doubtful bool
	}{
		{
			name: "a new pod", news: event(50, ctr("a", pod.Running)),
			want: map[string]pod.ContainerState{"a": pod.Running}, changed: true,
		},
		{
			name: "an event that repeats", before: []sighting{event(10, ctr("a", pod.Running))}, news: event(10, ctr("a", pod.Running)),
			want: map[string]pod.ContainerState{"a": pod.Running},
		},
		{
			name: "an exit", before: []sighting{event(10, ctr("a", pod.Running))}, news: event(20, ctr("a", pod.Exited)),
			want: map[string]pod.ContainerState{"a": pod.Exited}, changed: true,
		},
		{
			name: "an exit in an event that overtook a reading", before: []sighting{reading(30, ctr("a", pod.Running))}, news: event(20, ctr("a", pod.Exited)),
			want: map[string]pod.ContainerState{"a": pod.Exited}, changed: true,
		},
		{
			name: "a late event does not bring a process back", before: []sighting{event(10, ctr("a", pod.Exited))}, news: event(20, ctr("a", pod.Running)),
			want: map[string]pod.ContainerState{"a": pod.Exited},
		},
		{
			name: "a runtime that lost sight of a container", before: []sighting{event(10, ctr("a", pod.Running))}, news: event(20, ctr("a", pod.Unknown)),
			want: map[string]pod.ContainerState{"a": pod.Unknown}, changed: true,
		},
		{
			name: "a removed container does not return", before: []sighting{event(10, ctr("a", pod.Running))}, removed: []string{"b"},
			news: event(20, ctr("a", pod.Running), ctr("b", pod.Exited)),
			want: map[string]pod.ContainerState{"a": pod.Running},
		},
		{
			name: "what an event leaves out is doubtful, not gone", before: []sighting{event(10, ctr("a", pod.Running), ctr("b", pod.Created))},
			news: event(20, ctr("a", pod.Running)),
			want: map[string]pod.ContainerState{"a": pod.Running, "b": pod.Created}, doubtful: true,
		},
		{
			name: "what a reading leaves out is gone", before: []sighting{event(10, ctr("a", pod.Running), ctr("b", pod.Exited))},
			news: reading(20, ctr("a", pod.Running)),
			want: map[string]pod.ContainerState{"a": pod.Running}, changed: true,
		},
		{
			name: "unless it was heard of after the reading began", before: []sighting{event(10, ctr("a", pod.Running), ctr("b", pod.Created))},
			news: reading(9, ctr("a", pod.Running)),
			want: map[string]pod.ContainerState{"a": pod.Running, "b": pod.Created},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, gone := newRecord(pod.Ref{UID: "u"}), map[string]time.Time{}
			for i, s := range test.before {
				r.merge(s, at(int64(10*(i+1))), gone)
			}
			for _, id := range test.removed {
				r.remove(id, at(90), gone)
			}
			changed, doubtful := r.merge(test.news, at(100), gone)
			if changed != test.changed || doubtful != test.doubtful {
				t.Errorf("changed %v, doubtful %v; want %v, %v", changed, doubtful, test.changed, test.doubtful)
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

func TestMergeOfSandboxes(t *testing.T) {
	for _, test := range []struct {
		name        string
		known, seen bool
		newer       bool
		want        bool
	}{
		{"it stays ready", true, true, true, true},
		{"it ends", true, false, true, false},
		{"it ended before a reading that overtook", true, false, false, false},
		{"it does not come back", false, true, true, false},
	} {
		r, gone := newRecord(pod.Ref{}), map[string]time.Time{}
		r.merge(sighting{at: at(10), sandboxes: []pod.Sandbox{sb("sb", test.known)}}, at(10), gone)
		when := at(5)
		if test.newer {
			when = at(20)
		}
		r.merge(sighting{at: when, sandboxes: []pod.Sandbox{sb("sb", test.seen)}}, at(30), gone)
		if got := r.view.Sandbox().Ready; got != test.want {
			t.Errorf("%s: ready %v, want %v", test.name, got, test.want)
		}
	}
}

func TestARemovedSandboxLeavesItsContainersInDoubt(t *testing.T) {
	r, gone := newRecord(pod.Ref{}), map[string]time.Time{}
	r.merge(sighting{
		at: at(1), complete: true, sandboxes: []pod.Sandbox{sb("sb", false), sb("other", true), sb("empty", false)},
		containers: []member{ctr("a", pod.Exited), {Container: pod.Container{ID: "b"}, sandbox: "other"}},
	}, at(1), gone)
	for _, test := range []struct {
		id       string
		doubtful bool
	}{{"sb", true}, {"empty", false}, {"b", false}, {"other", false}} {
		if changed, doubtful := r.remove(test.id, at(2), gone); !changed || doubtful != test.doubtful {
			t.Errorf("%s removed: changed %t, doubtful %t", test.id, changed, doubtful)
		}
	}
	if len(r.view.Sandboxes) != 0 || len(r.view.Containers) != 1 || r.view.Containers[0].ID != "a" {
		t.Errorf("left: %+v", r.view)
	}
	if _, ok := gone["a"]; ok {
		t.Error("the container is taken for gone, which nobody said")
	}
}
