package eviction

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// TestEverySignalHasItsSentence: package why says of each eviction what the node or the pod had too much of.
func TestEverySignalHasItsSentence(t *testing.T) {
	sentence := func(signal string) string {
		b := why.New()
		b.Track(&v1.Pod{}, why.Ended, &pod.Failure{Reason: reason, Signal: signal}, time.Time{})
		r, _ := b.Report("", nil, time.Time{})
		return r.Cause.What
	}
	signals := []string{emptyDirLimit, podLimit, containerLimit}
	for s := range signalInfos {
		signals = append(signals, string(s))
	}
	for _, s := range signals {
		if got := sentence(s); got == "" || got == sentence("") {
			t.Errorf("%s: %q", s, got)
		}
	}
}
