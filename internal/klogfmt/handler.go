package klogfmt

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"swiftlet/internal/clip"
)

// Config configures a Handler.
type Config struct {
	JSON      bool
	Verbosity *Verbosity
	// Info receives records of severity info, in JSON also warnings; Error receives the others. They
	// may be equal.
	Info, Error io.Writer
	// Limiter, if set, drops records of causes that have too many.
	Limiter *Limiter
}

// Handler is a slog.Handler. It writes each record with one call of Write.
//
// Groups of WithGroup become prefixes of keys, as in klog.
type Handler struct {
	cfg    Config
	mu     *sync.Mutex // held for a write
	attrs  []slog.Attr // of WithAttrs
	prefix string      // of the keys of further attributes
}

// New returns a handler.
func New(cfg Config) *Handler { return &Handler{cfg: cfg, mu: &sync.Mutex{}} }

func (h *Handler) Enabled(_ context.Context, l slog.Level) bool { return h.cfg.Verbosity.enabled(l) }

func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = slices.Clone(h.attrs)
	for _, a := range attrs {
		next.attrs = append(next.attrs, slog.Attr{Key: h.prefix + a.Key, Value: a.Value})
	}
	return &next
}

func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.prefix += name + "."
	return &next
}

func (h *Handler) Handle(_ context.Context, r slog.Record) error {
	file, line := caller(r.PC)
	if !h.cfg.Verbosity.enabledIn(file[strings.LastIndexByte(file, '/')+1:], r.Level) {
		return nil
	}
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	if !h.limit(&r) {
		return nil
	}
	b := buffers.Get().(*bytes.Buffer)
	defer release(b)
	entry := entry{Buffer: b, record: &r, file: file, line: line}
	out := h.cfg.Info
	if h.cfg.JSON {
		h.writeJSON(&entry)
		if isError(r.Level) {
			out = h.cfg.Error
		}
	} else {
		h.writeText(&entry)
		if r.Level >= slog.LevelWarn {
			out = h.cfg.Error
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := out.Write(b.Bytes())
	return err
}

// WriteKlogBuffer writes a line that klog has formatted.
func (h *Handler) WriteKlogBuffer(line []byte) {
	if !h.limitLine(line) {
		return
	}
	if len(line) > maxValue {
		line = append([]byte(clip.Text(bytes.TrimSuffix(line, []byte("\n")), maxValue)), '\n')
	}
	out := h.cfg.Error
	if len(line) > 0 && line[0] == 'I' {
		out = h.cfg.Info
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = out.Write(line) // there is nowhere to report it to
}

// entry is a record that is being written.
type entry struct {
	*bytes.Buffer
	record *slog.Record
	file   string // with the whole path
	line   int
	texts  []span // attributes written in text form
}

// eachBefore calls write for the attributes of WithAttrs.
func (h *Handler) eachBefore(write func(slog.Attr)) {
	for _, a := range h.attrs {
		flatten(a, write)
	}
}

// eachOf calls write for the attributes of a record.
func (h *Handler) eachOf(r *slog.Record, write func(slog.Attr)) {
	r.Attrs(func(a slog.Attr) bool {
		if h.prefix != "" {
			a.Key = h.prefix + a.Key
		}
		flatten(a, write)
		return true
	})
}

// flatten calls write for an attribute, or for those of a group without a name.
func flatten(a slog.Attr, write func(slog.Attr)) {
	if a.Key != "" {
		write(a)
		return
	}
	if v := a.Value.Resolve(); v.Kind() == slog.KindGroup {
		for _, inner := range v.Group() {
			flatten(inner, write)
		}
	}
}

// errKey is the key of a record's error. On records of severity error the text form has it first and
// the JSON form has it last.
const errKey = "err"

func isError(l slog.Level) bool { return l >= slog.LevelError }

// caller returns the file and line of a call.
func caller(pc uintptr) (file string, line int) {
	if pc == 0 {
		return "???", 1
	}
	f := runtime.FuncForPC(pc - 1)
	if f == nil {
		return "???", 1
	}
	return f.FileLine(pc - 1)
}

// maxValue limits the message and each value of a record before they are escaped. Who logs a text of
// others limits it further.
const maxValue = 32 << 10

// largestPooled limits the memory that the pool keeps.
const largestPooled = 16 << 10

var buffers = sync.Pool{New: func() any { return bytes.NewBuffer(make([]byte, 0, 512)) }}

func release(b *bytes.Buffer) {
	if b.Cap() <= largestPooled {
		b.Reset()
		buffers.Put(b)
	}
}
