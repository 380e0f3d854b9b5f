package config

import (
	"testing"
	"time"
)

func TestCrashBackoff(t *testing.T) {
	for gates, want := range map[string][2]time.Duration{
		"":                                 {10 * time.Second, 5 * time.Minute},
		"KubeletCrashLoopBackOffMax=false": {10 * time.Second, 5 * time.Minute},
		"ReduceDefaultCrashLoopBackOffDecay=true":                                  {time.Second, 5 * time.Minute},
		"ReduceDefaultCrashLoopBackOffDecay=true,KubeletCrashLoopBackOffMax=false": {time.Second, time.Minute},
	} {
		cfg := mustLoad(t, "--feature-gates="+gates)
		if first, longest := cfg.CrashBackoff(); first != want[0] || longest != want[1] {
			t.Errorf("%q: first %s, longest %s, want %s", gates, first, longest, want)
		}
	}
}
