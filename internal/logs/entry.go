package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Stream is the output stream of an entry.
type Stream string

const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Entry is one line of a log file. The runtime splits long lines of the container into several
// entries, of which all but the last are Partial.
type Entry struct {
	Time    time.Time
	Stream  Stream
	Partial bool
	// Content is the container's output; it ends in a newline at the end of a line. It may share
	// memory with the parsed line.
	Content []byte
}

// ParseEntry parses one line of a log file, with its newline if it has one: in the format of CRI
// ("TIME STREAM TAGS CONTENT") or Docker's JSON.
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
	// Only the first tag is defined; later versions of the format may add more.
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
