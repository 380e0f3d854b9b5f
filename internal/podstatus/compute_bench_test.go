package podstatus

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// BenchmarkCompute derives the status of a pod on each sync.
func BenchmarkCompute(b *testing.B) {
	for name, c := range map[string]struct{ containers, seen string }{
		"one container":                     {"a", "ready a:run"},
		"init, sidecar and five containers": {"isabcde", "ready i:0 s:run a:run b:run c:run d:run e:run"},
	} {
		b.Run(name, func(b *testing.B) {
			in := Input{Pod: newPod(v1.RestartPolicyAlways, c.containers), Observed: observe(c.seen), HostIPs: []string{"192.0.2.1"}, Runtime: "containerd", Now: now}
			b.ReportAllocs()
			for b.Loop() {
				Compute(in)
			}
		})
	}
}
