package server

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestRoutesAgree: authorization and the labels of request metrics look at the first segment
// of a path, which may not be a path of the table, so the rows that share it must agree.
func TestRoutesAgree(t *testing.T) {
	subresources, long := map[string]string{}, map[string]bool{}
	for _, r := range start(t, true, enableAll).server.routes {
		root := firstSegment(r.path)
		if before, ok := subresources[root]; r.subresources == "" || ok && before != r.subresources {
			t.Errorf("%s: subresources %q, want %q as for the rest of /%s", r.path, r.subresources, before, root)
		}
		if before, ok := long[root]; ok && before != r.traits.has(longRunning) {
			t.Errorf("%s: long-running is %v, want %v as for the rest of /%s", r.path, !before, before, root)
		}
		subresources[root], long[root] = r.subresources, r.traits.has(longRunning)
	}
}

// TestRequestLabels holds the reference kubelet's values of the labels path and long_running,
// which do not depend on what is enabled.
func TestRequestLabels(t *testing.T) {
	labels := pathLabels(start(t, true, nil).server.routes)
	want := "allocatedPods attach checkpoint configz containerLogs debug exec flagz healthz logs metrics metrics/cadvisor " +
		"metrics/probes metrics/resource pods portForward run runningpods stats statusz"
	if got := strings.Join(slices.Sorted(maps.Keys(labels)), " "); got != want {
		t.Errorf("paths %s, want %s", got, want)
	}
	maps.DeleteFunc(labels, func(_ string, long bool) bool { return !long })
	if got := strings.Join(slices.Sorted(maps.Keys(labels)), " "); got != "attach debug exec" {
		t.Errorf("long-running paths %s, want attach debug exec", got)
	}
}

// TestRefusals: these paths answer 405 where debugging handlers are off; all others are not found.
func TestRefusals(t *testing.T) {
	n := start(t, true, enableAll)
	var refused []string
	for _, r := range n.server.readOnlyRoutes() {
		if r.subresources == "" {
			refused = append(refused, r.path)
		}
	}
	slices.Sort(refused)
	const want = "/attach/ /containerLogs/ /debug/pprof/ /exec/ /logs/ /portForward/ /run/ /runningpods/"
	if got := strings.Join(refused, " "); got != want {
		t.Errorf("refused %s, want %s", got, want)
	}
}
