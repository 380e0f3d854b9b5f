package plan

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// BenchmarkCompute plans for pods that need nothing, which is what most syncs find, and that start.
func BenchmarkCompute(b *testing.B) {
	for name, c := range map[string]struct{ spec, seen string }{
		"settled":             {"Always | a", "ready a:run"},
		"settled 5":           {"Always i s^ | a b c d e", "ready i:0 s:run a:run b:run c:run d:run e:run"},
		"new":                 {"Always | a", "none"},
		"crashed, with older": {"Always | a b", "ready a:7,7 b:run"},
	} {
		b.Run(name, func(b *testing.B) {
			p := parsePod(c.spec)
			observed, health := parseObserved(c.seen)
			in := Input{Pod: p, Observed: observed, Health: health, Hash: func(*v1.Container) string { return "h" }}
			b.ReportAllocs()
			for b.Loop() {
				Compute(in)
			}
		})
	}
}
