package runtime

import (
	"testing"
	"time"

	"swiftlet/internal/pod"
)

func TestFindGarbage(t *testing.T) {
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
		"pod without containers": {},
		"newest exited instance is kept": {
			o:    pod.Observed{Sandboxes: []pod.Sandbox{sandbox("s", 0, true)}, Containers: []pod.Container{exited("3", "c", 3), exited("2", "c", 2), exited("1", "c", 1)}},
			keep: 1, containers: []string{"2", "1"},
		},
		"one exited instance is kept next to the running one": {
			o:    pod.Observed{Containers: []pod.Container{in(exited("3", "c", 3), pod.Running), exited("2", "c", 2), exited("1", "c", 1)}},
			keep: 1, containers: []string{"1"},
		},
		"a young instance is kept": {
			o:    pod.Observed{Containers: []pod.Container{exited("3", "c", 10), exited("2", "c", 8), exited("1", "c", 7)}},
			keep: 1, containers: []string{"1"}, wait: 1,
		},
		"two young instances wait for the older to age": {
			o:    pod.Observed{Containers: []pod.Container{exited("4", "c", 12), exited("3", "c", 11), exited("2", "c", 10), exited("1", "c", 7)}},
			keep: 1, containers: []string{"1"}, wait: 2*time.Second + 1,
		},
		"keeping none removes all but the running instance": {
			o:          pod.Observed{Containers: []pod.Container{in(exited("3", "c", 3), pod.Running), exited("2", "c", 2), exited("1", "c", 1)}},
			containers: []string{"2", "1"},
		},
		"keeping none keeps the newest exited instance": {
			o:          pod.Observed{Containers: []pod.Container{exited("3", "c", 3), exited("2", "c", 2)}},
			containers: []string{"2"},
		},
		"a negative maximum keeps all": {
			o:    pod.Observed{Containers: []pod.Container{exited("3", "c", 3), exited("2", "c", 2), exited("1", "c", 1)}},
			keep: -1,
		},
		"each container is counted on its own": {
			o:    pod.Observed{Containers: []pod.Container{exited("2", "c", 2), exited("1", "d", 1)}},
			keep: 1,
		},
		"newest created instance is kept": {
			o:    pod.Observed{Containers: []pod.Container{in(exited("3", "c", 3), pod.Created), exited("2", "c", 2)}},
			keep: 1,
		},
		"created instance with a newer one is removed": {
			o:    pod.Observed{Containers: []pod.Container{in(exited("3", "c", 3), pod.Running), in(exited("2", "c", 2), pod.Created)}},
			keep: 1, containers: []string{"2"},
		},
		"instance in unknown state is kept": {
			o: pod.Observed{Containers: []pod.Container{in(exited("2", "c", 2), pod.Unknown), in(exited("1", "c", 1), pod.Unknown)}},
		},
		"old sandboxes are removed": {
			o:         pod.Observed{Sandboxes: []pod.Sandbox{sandbox("s9", 9, true), sandbox("s5", 5, false), sandbox("s1", 1, false)}},
			sandboxes: []string{"s5", "s1"},
		},
		"newest sandbox is kept though it is not ready": {
			o: pod.Observed{Sandboxes: []pod.Sandbox{sandbox("s9", 9, false)}},
		},
		"a ready sandbox is kept": {
			o: pod.Observed{Sandboxes: []pod.Sandbox{sandbox("s9", 9, true), sandbox("s5", 5, true)}},
		},
		"sandbox with a kept container is kept after the clock was set back": {
			o: pod.Observed{Sandboxes: []pod.Sandbox{sandbox("s9", 9, true), sandbox("s5", 5, false), sandbox("s1", 1, false)},
				Containers: []pod.Container{{ID: "7", SandboxID: "s5", Name: "c", State: pod.Exited, CreatedAt: at(2)}}},
			keep: 1, sandboxes: []string{"s1"},
		},
		"sandbox with a kept container is kept": {
			o: pod.Observed{Sandboxes: []pod.Sandbox{sandbox("s9", 9, true), sandbox("s5", 5, false), sandbox("s1", 1, false)},
				Containers: []pod.Container{exited("7", "c", 7), exited("2", "c", 2)}},
			keep: 1, containers: []string{"2"}, sandboxes: []string{"s1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var containers, sandboxes []string
			garbage := FindGarbage(c.o, GCPolicy{MaxPerContainer: c.keep, CreatedBefore: at(8)})
			for _, x := range garbage.Containers {
				containers = append(containers, x.ID)
			}
			for _, x := range garbage.Sandboxes {
				sandboxes = append(sandboxes, x.ID)
			}
			expect(t, "containers", c.containers, containers)
			expect(t, "sandboxes", c.sandboxes, sandboxes)
			if garbage.Wait != c.wait {
				t.Errorf("next garbage in %s, want %s", garbage.Wait, c.wait)
			}
		})
	}
}
