package observe

import (
	"fmt"
	"testing"
	"time"

	"swiftlet/internal/pod"
)

// BenchmarkMerge takes the observation of an event, with and without a change.
func BenchmarkMerge(b *testing.B) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ref := pod.Ref{UID: "uid", Name: "web", Namespace: "default"}
	seen := func(at time.Time, exitCode int32) observation {
		s := observation{ref: ref, at: at, complete: true, sandboxes: []pod.Sandbox{{ID: "sandbox", Ready: true, IPs: []string{"10.0.0.1"}, CreatedAt: began}}}
		for i := range 3 {
			s.containers = append(s.containers, containerEntry{sandbox: "sandbox", Container: pod.Container{
				ID: fmt.Sprint("container-", i), Name: fmt.Sprint("c", i), State: pod.Running, ExitCode: exitCode, CreatedAt: began,
			}})
		}
		return s
	}
	for name, codes := range map[string][2]int32{"unchanged": {0, 0}, "changed": {0, 1}} {
		b.Run(name, func(b *testing.B) {
			r, removed := newRecord(ref), map[string]time.Time{}
			now := began
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				now = now.Add(time.Second)
				r.merge(seen(now, codes[i%2]), now, removed)
			}
		})
	}
}
