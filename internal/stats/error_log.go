package stats

import (
	"log/slog"
	"sync"
)

// errorLog logs an error once when it begins or changes, and its end.
type errorLog struct {
	mu   sync.Mutex
	last string
}

func (l *errorLog) report(log *slog.Logger, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case text == l.last:
	case text != "":
		log.Warn("stats: read some eviction signals failed", "err", err)
	default:
		log.Info("stats: all eviction signals can be read again")
	}
	l.last = text
}
