package runtime

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"swiftlet/internal/pod"
)

// A sandbox with an IP is stopped even if it is not ready; one without was stopped before.
func TestStop(t *testing.T) {
	p := testPod(t, `{terminationGracePeriodSeconds: 30, initContainers: [{name: s, restartPolicy: Always}], containers: [{name: a}]}`)
	what := Targets{
		Containers: []pod.Container{{ID: "s", Name: "s"}, {ID: "a", Name: "a"}},
		Sandboxes:  []pod.Sandbox{{ID: "stopped"}, {ID: "dead", IPs: []string{"10.0.0.1"}}},
	}
	zero := int64(0)
	for name, c := range map[string]struct {
		how  StopOptions
		want []string
	}{
		"whole pod terminates": {how: StopOptions{PodEnds: true}, want: []string{"stop a 30s", "stop s 30s", "stop sandbox dead"}},
		"pod keeps running":    {how: StopOptions{Grace: &zero}, want: []string{"stop a 2s", "stop s 2s", "stop sandbox dead"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			if err := b.Stop(t.Context(), p, what, c.how); err != nil {
				t.Fatal(err)
			}
			if !c.how.PodEnds { // they stop side by side
				slices.Sort(b.cri.calls[:2])
			}
			expect(t, "calls", c.want, b.cri.calls)
		})
	}
	b := newBench(t, nil)
	b.cri.fail["stop a 30s"] = errors.New("busy")
	if err := b.Stop(t.Context(), p, what, StopOptions{PodEnds: true}); err == nil || slices.Contains(b.cri.calls, "stop sandbox dead") {
		t.Errorf("error %v, calls %q", err, b.cri.calls)
	}
}

func TestRemove(t *testing.T) {
	for logs, want := range map[Logs][]string{DeleteLogs: nil, KeepLogs: {"pods/ns_p_u/c/0.log"}} {
		b := newBench(t, nil)
		log := filepath.Join(b.cfg.PodLogsDir, "ns_p_u/c/0.log")
		writeFile(t, log, "")
		what := Targets{Containers: []pod.Container{{ID: "c", Name: "c", LogPath: log}}, Sandboxes: []pod.Sandbox{{ID: "s"}}}
		if err := b.Remove(t.Context(), pod.Ref{Namespace: "ns", Name: "p", UID: "u"}, what, logs); err != nil {
			t.Fatal(err)
		}
		expect(t, "calls", []string{"remove c", "stop sandbox s", "remove sandbox s"}, b.cri.calls)
		expect(t, "files left", want, files(t, filepath.Dir(b.cfg.RootDir)))
	}
}
