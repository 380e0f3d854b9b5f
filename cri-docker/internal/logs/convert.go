// Package logs writes containers' logs in the CRI's format, from those that Docker's json-file driver writes.
// The output is a function of the input, byte by byte. So after a crash the length of the output says where
// to go on, and no line is lost or repeated.
package logs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// entry is a line of Docker's log.
type entry struct {
	Log    string    `json:"log"`
	Stream string    `json:"stream"`
	Time   time.Time `json:"time"`
}

// parse reads a line of Docker's log.
func parse(line []byte) (entry, error) {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return e, fmt.Errorf("convert log: %w", err)
	}
	if e.Stream != "stdout" && e.Stream != "stderr" {
		return e, fmt.Errorf("convert log: unknown stream %q", e.Stream)
	}
	if year := e.Time.UTC().Year(); year < 1 || year > 9999 {
		return e, fmt.Errorf("convert log: impossible time %s", e.Time)
	}
	return e, nil
}

// append adds the line in the CRI's format. Docker cuts lines longer than 16 KiB: all parts
// but the last have no newline, as has the end of a log without one.
func (e entry) append(to []byte) []byte {
	text, full := bytes.CutSuffix([]byte(e.Log), []byte("\n"))
	to = e.Time.UTC().AppendFormat(to, time.RFC3339Nano)
	to = append(to, ' ')
	to = append(to, e.Stream...)
	if full {
		to = append(to, " F "...)
	} else {
		to = append(to, " P "...)
	}
	// A reader would take a newline inside for the end. Docker never writes one.
	to = append(to, bytes.ReplaceAll(text, []byte("\n"), []byte(" "))...)
	return append(to, '\n')
}
