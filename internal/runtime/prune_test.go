package runtime

import (
	"testing"
	"time"

	"swiftlet/internal/pod"
)

func TestPrune(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	exited := func(id, name string, s int) pod.Container {
		return pod.Container{ID: id, Name: name, State: pod.Exited, CreatedAt: at(s)}
	}
	in := func(c pod.Container, state pod.ContainerState) pod.Container { c.State = state; return c }
	sandbox := func(id string, s int, ready bool) pod.Sandbox {
		return pod.Sandbox{ID: id, Attempt: uint32(s), CreatedAt: at(s), Ready: ready}
	}
	for name, c := range map[string]struct {
		o                     pod.Observed
		keep                  int
		containers, sandboxes []string
		wait                  time.Duration
	}{
		"nothing": {},
		"newest ended is kept": {
			o:    pod.Observed{Sandboxes: []pod.Sandbox{sandbox("s", 0, true)}, Containers: []pod.Container{exited("3", "c", 3), exited("2", "c", 2), exited("1", "c", 1)}},
			keep: 1, containers: []string{"2", "1"},
		},
		"beside the running one": {
			o:    pod.Observed{Containers: []pod.Container{in(exited("3", "c", 3), pod.Running), exited("2", "c", 2), exited("1", "c", 1)}},
			keep: 1, containers: []string{"1"},
		},
		"a young one stays": {
			o:    pod.Observed{Containers: []pod.Container{exited("3", "c", 10), exited("2", "c", 8), exited("1", "c", 7)}},
			keep: 1, containers: []string{"1"}, wait: 1,
		},
		"two young ones stay until the first is old": {
			o:    pod.Observed{Containers: []pod.Container{exited("4", "c", 12), exited("3", "c", 11), exited("2", "c", 10), exited("1", "c", 7)}},
			keep: 1, containers: []string{"1"}, wait: 2*time.Second + 1,
		},
		"none but the running one": {
			o:          pod.Observed{Containers: []pod.Container{in(exited("3", "c", 3), pod.Running), exited("2", "c", 2), exited("1", "c", 1)}},
			containers: []string{"2", "1"},
		},
		"none, but the newest shows how it ended": {
			o:          pod.Observed{Containers: []pod.Container{exited("3", "c", 3), exited("2", "c", 2)}},
			containers: []string{"2"},
		},
		"all may stay": {
			o:    pod.Observed{Containers: []pod.Container{exited("3", "c", 3), exited("2", "c", 2), exited("1", "c", 1)}},
			keep: -1,
		},
		"each name for itself": {
			o:    pod.Observed{Containers: []pod.Container{exited("2", "c", 2), exited("1", "d", 1)}},
			keep: 1,
		},
		"created is about to start": {
			o:    pod.Observed{Containers: []pod.Container{in(exited("3", "c", 3), pod.Created), exited("2", "c", 2)}},
			keep: 1,
		},
		"created and overtaken never will": {
			o:    pod.Observed{Containers: []pod.Container{in(exited("3", "c", 3), pod.Running), in(exited("2", "c", 2), pod.Created)}},
			keep: 1, containers: []string{"2"},
		},
		"unknown may run": {
			o: pod.Observed{Containers: []pod.Container{in(exited("2", "c", 2), pod.Unknown), in(exited("1", "c", 1), pod.Unknown)}},
		},
		"old sandboxes": {
			o:         pod.Observed{Sandboxes: []pod.Sandbox{sandbox("s9", 9, true), sandbox("s5", 5, false), sandbox("s1", 1, false)}},
			sandboxes: []string{"s5", "s1"},
		},
		"the newest stays though it ended": {
			o: pod.Observed{Sandboxes: []pod.Sandbox{sandbox("s9", 9, false)}},
		},
		"a ready one stays": {
			o: pod.Observed{Sandboxes: []pod.Sandbox{sandbox("s9", 9, true), sandbox("s5", 5, true)}},
		},
		"one that holds what is kept stays though the clock was set back": {
			o: pod.Observed{Sandboxes: []pod.Sandbox{sandbox("s9", 9, true), sandbox("s5", 5, false), sandbox("s1", 1, false)},
				Containers: []pod.Container{{ID: "7", SandboxID: "s5", Name: "c", State: pod.Exited, CreatedAt: at(2)}}},
			keep: 1, sandboxes: []string{"s1"},
		},
		"one that holds what is kept stays": {
			o: pod.Observed{Sandboxes: []pod.Sandbox{sandbox("s9", 9, true), sandbox("s5", 5, false), sandbox("s1", 1, false)},
				Containers: []pod.Container{exited("7", "c", 7), exited("2", "c", 2)}},
			keep: 1, containers: []string{"2"}, sandboxes: []string{"s1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var containers, sandboxes []string
			pruned := Prune(c.o, Keep{Dead: c.keep, Since: at(8)})
			for _, x := range pruned.Containers {
				containers = append(containers, x.ID)
			}
			for _, x := range pruned.Sandboxes {
				sandboxes = append(sandboxes, x.ID)
			}
			expect(t, "containers", c.containers, containers)
			expect(t, "sandboxes", c.sandboxes, sandboxes)
			if pruned.Wait != c.wait {
				t.Errorf("the next in %s, want %s", pruned.Wait, c.wait)
			}
		})
	}
}
