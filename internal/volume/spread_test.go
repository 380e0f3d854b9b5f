package volume

import (
	"testing"
	"time"
)

func TestFirstWaitIsAPartOfThePeriod(t *testing.T) {
	const period = time.Minute
	for name, tt := range map[string]struct {
		jitter func() float64
		want   time.Duration
	}{
		"not spread": {nil, period},
		"whole":      {func() float64 { return 0 }, period},
		"half":       {func() float64 { return 0.5 }, period / 2},
	} {
		t.Run(name, func(t *testing.T) {
			v := &Volumes{deps: Deps{Jitter: tt.jitter}}
			if got := v.firstWait(period); got != tt.want {
				t.Errorf("first wait %v, want %v", got, tt.want)
			}
		})
	}
}
