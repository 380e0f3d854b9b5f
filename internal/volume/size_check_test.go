package volume

import (
	"testing"
	"time"
)

func TestJitteredPeriod(t *testing.T) {
	const period = time.Minute
	for name, tt := range map[string]struct {
		jitter func() float64
		want   time.Duration
	}{
		"no jitter":  {nil, period},
		"jitter 0":   {func() float64 { return 0 }, period},
		"jitter 0.5": {func() float64 { return 0.5 }, period / 2},
	} {
		t.Run(name, func(t *testing.T) {
			v := &Volumes{deps: Deps{Jitter: tt.jitter}}
			if got := v.jitteredPeriod(period); got != tt.want {
				t.Errorf("first wait %v, want %v", got, tt.want)
			}
		})
	}
}
