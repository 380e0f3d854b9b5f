package conformance

import (
	"slices"
	"strings"
	"testing"
)

func TestProgressPrintsOneLinePerTest(t *testing.T) {
	var out strings.Builder
	p := &progress{w: &out, side: "ours", names: map[string]bool{"[sig-node] Pods should run": true, "[sig-node] Pods should stop [Slow]": true}}
	const output = "------------------------------\n" +
		"• [2.126 seconds]\n[sig-node] Pods should run [sig-node, Conformance]\n/some/file.go:12\n" +
		"------------------------------\n" +
		"• [FAILED] [301.5 seconds]\n[sig-node] Pods [It] should stop [Slow] [sig-node, Slow]\nother\n"
	for _, part := range []string{output[:40], output[40:41], output[41:]} { // writes end anywhere
		if n, err := p.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("Write = %d, %v; want %d", n, err, len(part))
		}
	}
	const want = "ours      passed   2.126 s [sig-node] Pods should run [sig-node, Conformance]\nours      failed   301.5 s [sig-node] Pods [It] should stop [Slow] [sig-node, Slow]\n"
	if out.String() != want {
		t.Errorf("said %q, want %q", out.String(), want)
	}
	wantDone := []Outcome{{Test: "[sig-node] Pods should run", State: passed, Seconds: 2.126}, {Test: "[sig-node] Pods should stop [Slow]", State: failed, Seconds: 301.5}}
	if !slices.Equal(p.done, wantDone) {
		t.Errorf("outcomes are %+v, want %+v", p.done, wantDone)
	}
}
