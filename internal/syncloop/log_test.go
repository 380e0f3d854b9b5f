package syncloop

import (
	"log/slog"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/klogfmt"
	"swiftlet/internal/pod"
)

func TestLogChanges(t *testing.T) {
	changes := []pod.Change{
		{Op: pod.Add, Pod: named("a")}, {Op: pod.Reconcile, Pod: named("b")}, {Op: pod.Add, Pod: named("c")}, {Op: pod.Delete, Pod: named("d")},
	}
	const add, remove = `"SyncLoop ADD" source="api" pods=["ns/a","ns/c"]` + "\n", `"SyncLoop DELETE" source="api" pods=["ns/d"]` + "\n"
	for level, want := range map[int32]string{1: "", 2: add + remove, 4: add + remove + `"SyncLoop RECONCILE" source="api" pods=["ns/b"]` + "\n"} {
		var out strings.Builder
		verbosity := klogfmt.NewVerbosity()
		verbosity.Set(level)
		l := Loop{deps: Deps{Log: slog.New(klogfmt.New(klogfmt.Config{Verbosity: verbosity, Info: &out, Error: &out}))}}
		l.logChanges(pod.SourceAPI, changes)
		var got string
		for line := range strings.Lines(out.String()) {
			_, message, _ := strings.Cut(line, "] ")
			got += message
		}
		if got != want {
			t.Errorf("verbosity %d logs\n%swant\n%s", level, got, want)
		}
	}
}

func named(name string) *v1.Pod {
	p := &v1.Pod{}
	p.Namespace, p.Name = "ns", name
	return p
}
