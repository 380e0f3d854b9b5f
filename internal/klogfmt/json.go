package klogfmt

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"

	"swiftlet/internal/clip"
)

// writeJSON writes one line:
//
//	{"ts":1763427723000.004,"caller":"dir/file.go:123","msg":"message","v":0,"key":"value"}
//
// ts is in milliseconds. Errors have no v. Attributes of WithAttrs are before v.
func (h *Handler) writeJSON(e *entry) {
	e.WriteString(`{"ts":`)
	e.writeMilliseconds(e.record.Time)
	e.WriteString(`,"caller":`)
	e.writeJSONString(shortPath(e.file) + ":" + strconv.Itoa(e.line))
	e.WriteString(`,"msg":`)
	e.writeJSONString(e.record.Message)
	failed := isError(e.record.Level)
	h.eachBefore(e.writeJSONMember)
	if !failed {
		e.WriteString(`,"v":`)
		e.writeInt(int64(verbosity(e.record.Level)))
	}
	h.eachOf(e.record, func(a slog.Attr) {
		if !failed || a.Key != errKey {
			e.writeJSONMember(a)
		}
	})
	if failed {
		h.eachOf(e.record, func(a slog.Attr) {
			if a.Key == errKey {
				e.writeJSONMember(a)
			}
		})
	}
	e.WriteString("}\n")
}

// shortPath returns the last two elements of a path.
func shortPath(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[strings.LastIndexByte(path[:i], '/')+1:]
	}
	return path
}

func (e *entry) writeMilliseconds(t time.Time) {
	e.writeFloat(float64(t.UnixNano()) / float64(time.Millisecond))
}

func (e *entry) writeFloat(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.writeJSONString(strconv.FormatFloat(f, 'f', -1, 64))
		return
	}
	e.Write(strconv.AppendFloat(e.AvailableBuffer(), f, 'f', -1, 64))
}

func (e *entry) writeJSONMember(a slog.Attr) {
	e.WriteByte(',')
	e.writeJSONAttr(a)
}

// writeJSONAttr writes a member of an object. If the value cannot be encoded, the member is the reason,
// with Error appended to the key.
func (e *entry) writeJSONAttr(a slog.Attr) {
	start := e.Len()
	e.writeJSONString(a.Key)
	e.WriteByte(':')
	if err := e.writeJSONValue(a.Value); err != nil {
		e.Truncate(start)
		e.writeJSONString(a.Key + "Error")
		e.WriteByte(':')
		e.writeJSONString(err.Error())
	}
}

func (e *entry) writeJSONValue(v slog.Value) error {
	switch v.Kind() {
	case slog.KindString:
		e.writeJSONString(v.String())
	case slog.KindInt64:
		e.writeInt(v.Int64())
	case slog.KindUint64:
		e.Write(strconv.AppendUint(e.AvailableBuffer(), v.Uint64(), 10))
	case slog.KindFloat64:
		e.writeFloat(v.Float64())
	case slog.KindBool:
		e.Write(strconv.AppendBool(e.AvailableBuffer(), v.Bool()))
	case slog.KindDuration:
		e.writeJSONString(v.Duration().String())
	case slog.KindTime:
		e.writeMilliseconds(v.Time())
	case slog.KindGroup:
		e.writeJSONGroup(v.Group())
	default:
		return e.writeJSONAny(v.Any())
	}
	return nil
}

func (e *entry) writeJSONGroup(attrs []slog.Attr) {
	e.WriteByte('{')
	first := true
	flatten(slog.Attr{Value: slog.GroupValue(attrs...)}, func(a slog.Attr) {
		if !first {
			e.WriteByte(',')
		}
		first = false
		e.writeJSONAttr(a)
	})
	e.WriteByte('}')
}

func (e *entry) writeJSONAny(v any) error {
	if m, ok := v.(logr.Marshaler); ok {
		v = marshalLog(m)
	}
	switch v := v.(type) {
	case string:
		e.writeJSONString(v)
	case error:
		e.writeJSONString(stringOf(v.Error))
	case fmt.Stringer:
		e.writeJSONString(stringOf(v.String))
	case slog.LogValuer:
		return e.writeJSONValue(slog.AnyValue(v).Resolve())
	default:
		start := e.Len()
		encoder := json.NewEncoder(e.Buffer)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(v); err != nil {
			return err
		}
		e.Truncate(e.Len() - 1) // the encoder ends with a line break
		if value := e.Bytes()[start:]; len(value) > maxValue {
			text := string(value)
			e.Truncate(start)
			e.writeJSONString(text)
		}
	}
	return nil
}

// writeJSONString writes a string in quotes. Invalid UTF-8 becomes U+FFFD.
func (e *entry) writeJSONString(s string) {
	s = clip.Text(s, maxValue)
	e.WriteByte('"')
	done := 0
	for i, r := range s {
		var escape string
		switch {
		case r == '"':
			escape = `\"`
		case r == '\\':
			escape = `\\`
		case r == '\n':
			escape = `\n`
		case r == '\t':
			escape = `\t`
		case r < ' ':
			escape = fmt.Sprintf(`\u%04x`, r)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			escape = `\ufffd`
		default:
			continue
		}
		e.WriteString(s[done:i])
		e.WriteString(escape)
		done = i + 1
	}
	e.WriteString(s[done:])
	e.WriteByte('"')
}
