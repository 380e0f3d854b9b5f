package stats

import (
	"log/slog"
	"sync"
)

// complaint tells of a trouble when it begins, changes or is over, not each time it is met.
type complaint struct {
	mu   sync.Mutex
	last string
}

func (c *complaint) say(log *slog.Logger, trouble error) {
	text := ""
	if trouble != nil {
		text = trouble.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case text == c.last:
	case text != "":
		log.Warn("it is not known of all what is left", "err", trouble)
	default:
		log.Info("it is known again of all what is left")
	}
	c.last = text
}
