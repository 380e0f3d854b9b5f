package host

import (
	"log/slog"
	"math"
	"runtime/debug"
	"testing"
)

func TestLimitMemory(t *testing.T) {
	for name, c := range map[string]struct {
		limit uint64
		env   string
		want  int64
	}{
		"cgroup_limit":        {limit: 1 << 30, want: (1 << 30) / 10 * 9},
		"no_limit":            {want: math.MaxInt64},
		"environment_is_kept": {limit: 1 << 30, env: "100MiB", want: math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
			t.Setenv("GOMEMLIMIT", c.env)
			LimitMemory(func() (uint64, error) { return c.limit, nil }, slog.New(slog.DiscardHandler))
			if got := debug.SetMemoryLimit(-1); got != c.want {
				t.Errorf("limit is %d, want %d", got, c.want)
			}
		})
	}
}
