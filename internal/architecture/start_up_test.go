package architecture

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"swiftlet/internal/preflight"
)

// TestChecksKnowEveryStartError: what keeps the kubelet from starting, `swiftlet check` reports. An error
// that begins in a function of the start must also be one that the checks of package preflight return, or
// preflight.AtRunTime must say why no check can find it.
func TestChecksKnowEveryStartError(t *testing.T) {
	flow, err := loadErrorFlow(module+"/internal/...", module+"/cmd/...")
	if err != nil {
		t.Fatal(err)
	}
	const checks = module + "/internal/preflight.Run"
	start := flow.reach([]string{module + "/internal/agent.Run"}, checks)
	checked := flow.reach([]string{checks})
	if len(start) < 200 || len(checked) < 100 {
		t.Fatalf("found %d functions of the start and %d of the checks: the analysis does not work", len(start), len(checked))
	}
	listed := maps.Clone(preflight.AtRunTime)
	for _, name := range slices.Sorted(maps.Keys(start)) {
		at, begins := flow.origins[name]
		if !begins || checked[name] {
			continue
		}
		short := shortName(name)
		if _, ok := listed[short]; !ok {
			t.Errorf("%s: no check finds the error of %s, which ends a start: call it in a check of package preflight, or list it in preflight.AtRunTime", at, short)
		}
		delete(listed, short)
	}
	for name := range listed {
		t.Errorf("preflight.AtRunTime lists %s, but it returns no error at a start that a check does not return, too", name)
	}
}

// shortName returns the name of a function as a package below internal/ and a function or method.
func shortName(name string) string {
	if receiver, method, ok := strings.Cut(strings.TrimPrefix(name, "("), ")"); ok && strings.HasPrefix(name, "(") {
		pointer := strings.HasPrefix(receiver, "*")
		receiver = strings.TrimPrefix(receiver, "*")
		dot := strings.LastIndex(receiver, ".")
		name = receiver[:dot] + ".(" + map[bool]string{true: "*"}[pointer] + receiver[dot+1:] + ")" + method
	}
	return strings.TrimPrefix(name, module+"/internal/")
}
