package simulate

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// trace records what happened, with simulated times.
type trace struct {
	start time.Time
	mu    sync.Mutex
	lines []string
}

func (t *trace) add(format string, args ...any) {
	at := time.Since(t.start)
	line := fmt.Sprintf(format, args...)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf("%12.6f %s", at.Seconds(), line))
}

// last returns the end of the trace.
func (t *trace) last(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines[max(0, len(t.lines)-n):], "\n")
}
