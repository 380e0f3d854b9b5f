package scale

import (
	"fmt"
	"strconv"
	"strings"
)

// countWatches adds up the open watches in the metrics of an API server.
func countWatches(text string) (int, error) {
	sum := 0.0
	for line := range strings.Lines(text) {
		labels, found := strings.CutPrefix(line, "apiserver_longrunning_requests{")
		if !found || !strings.Contains(labels, `verb="WATCH"`) {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(labels[strings.LastIndexByte(labels, '}')+1:]), 64)
		if err != nil {
			return 0, fmt.Errorf("parse metrics: %w", err)
		}
		sum += value
	}
	return int(sum), nil
}
