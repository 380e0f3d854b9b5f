package stats

import (
	"io"
	"strconv"
	"strings"
	"time"
)

// text writes the Prometheus text format. A scrape is tens of thousands of lines, so they
// are put together in one small buffer and no line costs an allocation.
type text struct {
	out io.Writer
	buf []byte
	err error
}

const pieceSize = 32 << 10

func newText(out io.Writer) *text { return &text{out: out, buf: make([]byte, 0, pieceSize+4<<10)} }

// heading begins a family of metrics.
func (t *text) heading(name, kind, help string) {
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

// sample writes one line. The labels are parts of a list, each as label makes them, that
// together end without a comma; a zero time is left out.
func (t *text) sample(name string, value float64, at time.Time, labels ...string) {
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
	if len(t.buf) >= pieceSize {
		t.flush()
	}
}

func (t *text) flush() {
	if t.err == nil {
		_, t.err = t.out.Write(t.buf)
	}
	t.buf = t.buf[:0]
}

// end writes what is left and says whether all could be written.
func (t *text) end() error {
	t.flush()
	return t.err
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// label is a pair as it stands between braces.
func label(name, value string) string { return name + `="` + escaper.Replace(value) + `"` }
