package status

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// BenchmarkDiff completes a derived status, compares it with the last one, and encodes the patch: what a
// sync costs that changes nothing, and one that does.
func BenchmarkDiff(b *testing.B) {
	var old v1.PodStatus
	err := yaml.Unmarshal([]byte(`
phase: Running
hostIP: 192.0.2.1
hostIPs: [{ip: 192.0.2.1}]
podIP: 10.0.0.1
podIPs: [{ip: 10.0.0.1}]
startTime: "2026-11-15T01:55:30Z"
qosClass: BestEffort
conditions:
- {type: PodReadyToStartContainers, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z"}
- {type: Initialized, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z"}
- {type: Ready, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z"}
- {type: ContainersReady, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z"}
- {type: PodScheduled, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z"}
containerStatuses: [{name: c, image: x, imageID: z, ready: true, restartCount: 0, state: {running: {startedAt: "2026-11-15T01:55:31Z"}}}]`), &old)
	if err != nil {
		b.Fatal(err)
	}
	p := &v1.Pod{Status: old}
	at := time.Date(2026, 11, 15, 2, 0, 0, 0, time.UTC)
	b.Run("unchanged", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if now := merge(p, p, old, *old.DeepCopy(), at); !sameStatus(old, now) {
				b.Fatal("the status has changed")
			}
		}
	})
	b.Run("patch", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := patchFor("uid", &old); err != nil {
				b.Fatal(err)
			}
		}
	})
}
