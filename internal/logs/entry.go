package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Stream says which of a container's outputs an entry came from.
type Stream string

const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Entry is one record of a log file. The runtime cuts long lines into several entries, of
// which all but the last are Partial.
type Entry struct {
	Time    time.Time
	Stream  Stream
	Partial bool
	// Content is what the container wrote; it ends in a newline where a line of the
	// container ends. It may share memory with the line it was parsed from.
	Content []byte
}

// ParseEntry parses one line of a log file, with its newline if it has one: either the
// CRI's own form ("TIME STREAM TAGS CONTENT") or a JSON object as Docker writes it.
func ParseEntry(line []byte) (Entry, error) {
	if len(line) > 0 && line[0] == '{' {
		return parseJSON(line)
	}
	return parseCRI(line)
}

var errFormat = errors.New("parse log entry: want TIME STREAM TAGS CONTENT")

func parseCRI(line []byte) (Entry, error) {
	stamp, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok {
		return Entry{}, errFormat
	}
	stream, rest, ok := bytes.Cut(rest, []byte{' '})
	if !ok {
		return Entry{}, errFormat
	}
	tags, content, ok := bytes.Cut(rest, []byte{' '})
	if !ok {
		return Entry{}, errFormat
	}
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return Entry{}, fmt.Errorf("parse log entry: %w", err)
	}
	e := Entry{Time: at, Stream: Stream(stream), Content: content}
	// Only the first tag is known; later versions of the format may add more.
	first, _, _ := bytes.Cut(tags, []byte{':'})
	if string(first) == "P" {
		e.Partial = true
		e.Content = bytes.TrimSuffix(content, []byte{'\n'})
	}
	return e, e.checkStream()
}

func parseJSON(line []byte) (Entry, error) {
	var doc struct {
		Log    string    `json:"log"`
		Stream Stream    `json:"stream"`
		Time   time.Time `json:"time"`
	}
	if err := json.Unmarshal(line, &doc); err != nil {
		return Entry{}, fmt.Errorf("parse log entry: %w", err)
	}
	content := []byte(doc.Log)
	e := Entry{Time: doc.Time, Stream: doc.Stream, Partial: !bytes.HasSuffix(content, []byte{'\n'}), Content: content}
	return e, e.checkStream()
}

func (e Entry) checkStream() error {
	if e.Stream != Stdout && e.Stream != Stderr {
		return fmt.Errorf("parse log entry: unexpected stream %q", e.Stream)
	}
	return nil
}
