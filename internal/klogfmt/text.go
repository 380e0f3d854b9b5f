package klogfmt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"

	"swiftlet/internal/clip"
)

// writeText writes
//
//	Lmmdd hh:mm:ss.uuuuuu pid file:line] "message" key="value"…
func (h *Handler) writeText(e *entry) {
	e.writeHeader()
	e.writeQuoted(clip.Text(e.record.Message, maxValue))
	var spans [16]span
	e.texts = spans[:0]
	failed := isError(e.record.Level)
	if failed {
		h.eachOf(e.record, func(a slog.Attr) {
			if a.Key == errKey {
				e.writeTextAttr(a)
			}
		})
	}
	h.eachBefore(e.writeTextAttr)
	h.eachOf(e.record, func(a slog.Attr) {
		if !failed || a.Key != errKey {
			e.writeTextAttr(a)
		}
	})
	e.WriteByte('\n')
}

// pid is a column of the header.
var pid = fmt.Sprintf("%7d ", os.Getpid())

func (e *entry) writeHeader() {
	letter := byte('I')
	switch l := e.record.Level; {
	case isError(l):
		letter = 'E'
	case l >= slog.LevelWarn:
		letter = 'W'
	}
	e.WriteByte(letter)
	e.Write(e.record.Time.AppendFormat(e.AvailableBuffer(), "0102 15:04:05.000000 "))
	e.WriteString(pid)
	e.WriteString(e.file[strings.LastIndexByte(e.file, '/')+1:])
	e.WriteByte(':')
	e.writeInt(int64(e.line))
	e.WriteString("] ")
}

func (e *entry) writeInt(n int64)     { e.Write(strconv.AppendInt(e.AvailableBuffer(), n, 10)) }
func (e *entry) writeQuoted(s string) { e.Write(strconv.AppendQuote(e.AvailableBuffer(), s)) }

// span is where an attribute is in the buffer.
type span struct {
	key        string
	start, end int
}

// writeTextAttr writes an attribute. Of attributes with the same key the last remains; of equal ones the
// first.
func (e *entry) writeTextAttr(a slog.Attr) {
	added := span{key: a.Key, start: e.Len()}
	e.WriteByte(' ')
	e.WriteString(a.Key)
	e.writeTextValue(a.Value)
	added.end = e.Len()
	i := slices.IndexFunc(e.texts, func(s span) bool { return s.key == a.Key })
	if i < 0 {
		e.texts = append(e.texts, added)
		return
	}
	all, former := e.Bytes(), e.texts[i]
	if bytes.Equal(all[former.start:former.end], all[added.start:]) {
		e.Truncate(added.start)
		return
	}
	length := former.end - former.start
	copy(all[former.start:], all[former.end:])
	e.Truncate(len(all) - length)
	e.texts = append(slices.Delete(e.texts, i, i+1), added)
	for j := range e.texts[i:] {
		e.texts[i+j].start -= length
		e.texts[i+j].end -= length
	}
}

// textWriter is implemented by values of klog, such as klog.ObjectRef.
type textWriter interface{ WriteText(*bytes.Buffer) }

// writeTextValue writes = and a value.
func (e *entry) writeTextValue(v slog.Value) {
	switch v.Kind() {
	case slog.KindString:
		e.writeTextString(v.String())
	case slog.KindInt64:
		e.WriteByte('=')
		e.writeInt(v.Int64())
	case slog.KindBool:
		e.WriteByte('=')
		e.Write(strconv.AppendBool(e.AvailableBuffer(), v.Bool()))
	case slog.KindGroup:
		e.WriteByte('=')
		e.writeJSONValue(v)
	default:
		e.writeTextAny(v.Any())
	}
}

func (e *entry) writeTextAny(v any) {
	switch v := v.(type) {
	case textWriter:
		e.WriteByte('=')
		start := e.Len()
		e.writeWith(v)
		e.limitFrom(start)
	case fmt.Stringer:
		e.writeTextString(stringOf(v.String))
	case string:
		e.writeTextString(v)
	case error:
		e.writeTextString(stringOf(v.Error))
	case logr.Marshaler:
		if marshalled := marshalLog(v); isString(marshalled) {
			e.writeTextString(marshalled.(string))
		} else {
			e.writeTextJSON(marshalled)
		}
	case slog.LogValuer:
		e.writeTextValue(slog.AnyValue(v).Resolve())
	case []byte:
		fmt.Fprintf(e.Buffer, "=%+q", v[:min(len(v), maxValue)])
	default:
		e.writeTextJSON(v)
	}
}

func isString(v any) bool { _, ok := v.(string); return ok }

func (e *entry) writeTextJSON(v any) {
	e.WriteByte('=')
	start := e.Len()
	if err := json.NewEncoder(e.Buffer).Encode(v); err != nil {
		e.Truncate(start)
		e.writeQuoted(fmt.Sprintf("<internal error: %v>", err))
		return
	}
	e.Truncate(e.Len() - 1) // the encoder ends with a line break
	e.limitFrom(start)
}

// limitFrom replaces what was written of a value by the beginning of its text, if it is too long.
func (e *entry) limitFrom(start int) {
	if value := e.Bytes()[start:]; len(value) > maxValue {
		text := clip.Text(value, maxValue)
		e.Truncate(start)
		e.writeQuoted(text)
	}
}

// writeTextString writes a string in quotes, or one of several lines with each indented by a tab.
func (e *entry) writeTextString(s string) {
	s = clip.Text(s, maxValue)
	if !strings.Contains(s, "\n") {
		e.WriteByte('=')
		e.writeQuoted(s)
		return
	}
	e.WriteString("=<\n")
	for line := range strings.Lines(s) {
		e.WriteByte('\t')
		e.WriteString(line)
	}
	if !strings.HasSuffix(s, "\n") {
		e.WriteByte('\n')
	}
	e.WriteString(" >")
}

func (e *entry) writeWith(v textWriter) {
	defer func() {
		if p := recover(); p != nil {
			e.writeQuoted(panicked(p))
		}
	}()
	v.WriteText(e.Buffer)
}

// stringOf calls a method of a value, which may panic.
func stringOf(method func() string) (s string) {
	defer func() {
		if p := recover(); p != nil {
			s = panicked(p)
		}
	}()
	return method()
}

func marshalLog(m logr.Marshaler) (v any) {
	defer func() {
		if p := recover(); p != nil {
			v = panicked(p)
		}
	}()
	return m.MarshalLog()
}

func panicked(p any) string { return fmt.Sprintf("<panic: %s>", p) }
