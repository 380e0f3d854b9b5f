package stats

import (
	"io"
	"strconv"
	"strings"
	"time"
)

// textWriter writes the Prometheus text format. A scrape has tens of thousands of lines, so
// they are formatted in one small buffer without an allocation per line.
type textWriter struct {
	out io.Writer
	buf []byte
	err error
}

const bufferSize = 32 << 10

func newTextWriter(out io.Writer) *textWriter {
	return &textWriter{out: out, buf: make([]byte, 0, bufferSize+4<<10)}
}

// header begins a metric family.
func (t *textWriter) header(name, kind, help string) {
	t.buf = append(t.buf, "# HELP "...)
	t.buf = append(t.buf, name...)
	t.buf = append(t.buf, ' ')
	t.buf = append(t.buf, help...)
	t.buf = append(t.buf, "\n# TYPE "...)
	t.buf = append(t.buf, name...)
	t.buf = append(t.buf, ' ')
	t.buf = append(t.buf, kind...)
	t.buf = append(t.buf, '\n')
}

// sample writes one line. The labels are fragments of the label list, made with label, that
// together end without a comma. A zero time is omitted.
func (t *textWriter) sample(name string, value float64, at time.Time, labels ...string) {
	t.buf = append(t.buf, name...)
	if len(labels) > 0 {
		t.buf = append(t.buf, '{')
		for _, part := range labels {
			t.buf = append(t.buf, part...)
		}
		t.buf = append(t.buf, '}')
	}
	t.buf = append(t.buf, ' ')
	t.buf = strconv.AppendFloat(t.buf, value, 'g', -1, 64)
	if !at.IsZero() {
		t.buf = append(t.buf, ' ')
		t.buf = strconv.AppendInt(t.buf, at.UnixMilli(), 10)
	}
	t.buf = append(t.buf, '\n')
	if len(t.buf) >= bufferSize {
		t.flush()
	}
}

func (t *textWriter) flush() {
	if t.err == nil {
		_, t.err = t.out.Write(t.buf)
	}
	t.buf = t.buf[:0]
}

// close writes the rest of the buffer and returns the first error of all writes.
func (t *textWriter) close() error {
	t.flush()
	return t.err
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// label formats a label pair. Bytes that are not UTF-8 become U+FFFD: the whole scrape would be rejected.
func label(name, value string) string {
	return name + `="` + escaper.Replace(strings.ToValidUTF8(value, "\uFFFD")) + `"`
}
