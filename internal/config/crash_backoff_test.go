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
		if initial, maximum := cfg.CrashBackoff(); initial != want[0] || maximum != want[1] {
			t.Errorf("%q: initial %s, maximum %s, want %s", gates, initial, maximum, want)
		}
	}
}
