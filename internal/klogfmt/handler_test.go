package klogfmt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	logsjson "k8s.io/component-base/logs/json"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"swiftlet/internal/klogfmt"
	"swiftlet/test/klogparse"
)

// at is the time of records.
var at = time.Date(2026, 1, 8, 1, 2, 3, 4567, time.Local)

// record returns a record and where it was called.
func record(level slog.Level, msg string, kv ...any) (r slog.Record, file string, line int) {
	var pcs [1]uintptr
	runtime.Callers(1, pcs[:])
	r = slog.NewRecord(at, level, msg, pcs[0])
	r.Add(kv...)
	frame, _ := runtime.CallersFrames(pcs[:]).Next()
	return r, frame.File, frame.Line
}

// written is what a handler writes.
func written(t testing.TB, asJSON bool, with []any, r slog.Record) string {
	t.Helper()
	var b strings.Builder
	v := klogfmt.NewVerbosity()
	v.Set(10)
	h := slog.New(klogfmt.New(klogfmt.Config{JSON: asJSON, Verbosity: v, Info: &b, Error: &b})).With(with...).Handler()
	if err := h.Handle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// withoutErr splits the error from key-value pairs, which logr takes separately.
func withoutErr(kv []any) (rest []any, err error) {
	for i := 0; i < len(kv); i += 2 {
		if err, ok := kv[i+1].(error); ok && kv[i] == "err" {
			return slices.Delete(slices.Clone(kv), i, i+2), err
		}
	}
	return kv, nil
}

// send passes a record to the reference's logger.
func send(log logr.Logger, level slog.Level, msg string, kv []any) {
	if level < slog.LevelError {
		log.V(-int(level)).Info(msg, kv...)
		return
	}
	rest, err := withoutErr(kv)
	log.Error(err, msg, rest...)
}

// klogText is what klog writes.
func klogText(level slog.Level, with []any, msg string, kv []any) string {
	_, file, line := record(level, msg)
	var b strings.Builder
	log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(10), textlogger.Output(&b), textlogger.FixedTime(at),
		textlogger.Backtrace(func(int) (string, int) { return file, line })))
	send(log.WithValues(with...), level, msg, kv)
	return b.String()
}

type writeSyncer struct{ io.Writer }

func (writeSyncer) Sync() error { return nil }

// klogJSON is what k8s.io/component-base/logs/json writes.
func klogJSON(level slog.Level, with []any, msg string, kv []any) string {
	var b strings.Builder
	log, _ := logsjson.NewJSONLogger(10, writeSyncer{&b}, nil, nil)
	send(log.WithValues(with...), level, msg, kv)
	return b.String()
}

// sameJSON compares lines but for ts and caller.
func sameJSON(t *testing.T, want, got string) {
	t.Helper()
	var values [2]map[string]any
	for i, text := range []string{want, got} {
		if err := json.Unmarshal([]byte(text), &values[i]); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for _, key := range []string{"ts", "caller"} {
			if _, ok := values[i][key]; !ok {
				t.Errorf("no %s in %s", key, text)
			}
			delete(values[i], key)
		}
	}
	if diff := cmp.Diff(values[0], values[1]); diff != "" {
		t.Errorf("component-base writes %sthis handler %s%s", want, got, diff)
	}
	if w, g := keys(t, want), keys(t, got); !slices.Equal(w, g) {
		t.Errorf("component-base writes the keys %v, this handler %v", w, g)
	}
}

func keys(t *testing.T, object string) (all []string) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(object))
	if _, err := decoder.Token(); err != nil {
		t.Fatal(err)
	}
	for decoder.More() {
		key, err := decoder.Token()
		var value json.RawMessage
		if err == nil {
			err = decoder.Decode(&value)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, key.(string))
	}
	return all
}

type (
	broken    struct{}
	marshaler struct{ v any }
	plain     struct {
		Name  string
		Count int `json:"count"`
	}
)

func (*broken) String() string      { panic("no string") }
func (m marshaler) MarshalLog() any { return m.v }

func TestEqualsKlog(t *testing.T) {
	cases := map[string]struct {
		level slog.Level
		msg   string
		with  []any
		kv    []any
	}{
		"no values":         {msg: "Started kubelet"},
		"verbosity":         {level: klogfmt.V2, msg: "SyncLoop ADD", kv: []any{"source", "api", "pods", klog.KObjSlice([]klog.KMetadata{&meta{"a", "b"}, &meta{"a", "c"}})}},
		"message escapes":   {msg: "a \"b\"\n\t\\ \x00 \xff ü 世 \u2028 <&>"},
		"values":            {msg: "m", kv: []any{"s", "x", "i", 5, "u", uint8(7), "f", 1.5, "b", true, "d", 90 * time.Second, "uid", types.UID("u-1")}},
		"value escapes":     {msg: "m", kv: []any{"s", "a \"b\"\t\\ \x00 \xff ü 世 <&>"}},
		"several lines":     {msg: "m", kv: []any{"s", "one\ntwo", "t", "one\n", "u", "\n", "v", "\n\n >", "w", 1}},
		"object":            {msg: "m", kv: []any{"pod", klog.KRef("ns", "name"), "node", klog.KRef("", "n")}},
		"structs and lists": {msg: "m", kv: []any{"p", plain{"<a>", 1}, "q", &plain{}, "l", []string{"a", "b"}, "n", nil, "m", map[string]int{"b": 1, "a": 2}}},
		"marshaler":         {msg: "m", kv: []any{"a", marshaler{"one"}, "b", marshaler{plain{"x", 2}}}},
		"error":             {level: slog.LevelError, msg: "m", kv: []any{"a", 1, "err", errors.New("it \"failed\"")}},
		"error, lines":      {level: slog.LevelError, msg: "m", kv: []any{"err", fmt.Errorf("a: %w", errors.Join(io.EOF, io.ErrNoProgress))}},
		"no error":          {level: slog.LevelError, msg: "m", kv: []any{"a", 1}},
		"err of info":       {msg: "m", kv: []any{"a", 1, "err", io.EOF, "b", 2}},
		"with":              {msg: "m", with: []any{"a", 1, "b", "x"}, kv: []any{"c", 2}},
		"error, with":       {level: slog.LevelError, msg: "m", with: []any{"a", 1, "b", "x"}, kv: []any{"c", 2, "err", io.EOF}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, _, _ := record(c.level, c.msg, c.kv...)
			if want, got := klogText(c.level, c.with, c.msg, c.kv), written(t, false, c.with, r); got != want {
				t.Errorf("klog writes %s, this handler %s", want, got)
			}
			sameJSON(t, klogJSON(c.level, c.with, c.msg, c.kv), written(t, true, c.with, r))
		})
	}
}

// TestEqualsKlogText has what the two forms write differently, or component-base not at all.
func TestEqualsKlogText(t *testing.T) {
	cases := map[string]struct{ with, kv []any }{
		"bytes":                       {nil, []any{"b", []byte("a\nü\xff")}},
		"panic":                       {nil, []any{"b", &broken{}, "c", 1}},
		"not a number":                {nil, []any{"f", math.NaN()}},
		"twice, different":            {[]any{"a", 1, "b", 2, "c", 3}, []any{"b", 4, "d", 5}},
		"twice, equal":                {[]any{"a", 1, "b", 2}, []any{"c", 3, "a", 1}},
		"three times":                 {[]any{"a", 1, "b", 2, "a", 3}, []any{"b", 2, "a", 5, "b", 6}},
		"first of several":            {nil, []any{"a", "long value", "b", 1, "a", 2, "b", 3}},
		"value of time":               {nil, []any{"t", at}},
		"more than fits on the stack": {nil, many(40)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, _, _ := record(slog.LevelInfo, "m", c.kv...)
			if want, got := klogText(slog.LevelInfo, c.with, "m", c.kv), written(t, false, c.with, r); got != want {
				t.Errorf("klog writes %s, this handler %s", want, got)
			}
		})
	}
}

func many(n int) (kv []any) {
	for i := range n {
		kv = append(kv, fmt.Sprintf("k%d", i), i)
	}
	return kv
}

type meta struct{ namespace, name string }

func (m *meta) GetName() string      { return m.name }
func (m *meta) GetNamespace() string { return m.namespace }

func TestForms(t *testing.T) {
	group := slog.Group("", "pod", klog.KRef("ns", "p"), "podUID", "u")
	cases := map[string]struct {
		level      slog.Level
		kv         []any
		text, json string
	}{
		"warning":       {slog.LevelWarn, nil, `W0108 01:02:03.000004 PID handler_test.go:LINE] "m"`, `"v":0`},
		"inlined group": {0, []any{group, "a", 1}, `"m" pod="ns/p" podUID="u" a=1`, `"v":0,"pod":{"name":"p","namespace":"ns"},"podUID":"u","a":1`},
		"group":         {0, []any{slog.Group("g", "a", 1, "b", "x")}, `"m" g={"a":1,"b":"x"}`, `"g":{"a":1,"b":"x"}`},
		"time":          {0, []any{"t", time.UnixMilli(1763427723001)}, ``, `"t":1763427723001`},
		"bytes":         {0, []any{"b", []byte("abc")}, ``, `"b":"YWJj"`},
		"panic":         {0, []any{"b", &broken{}}, ``, `"b":"<panic: no string>"`},
		"not encoded":   {0, []any{"c", make(chan int)}, ``, `"cError":"json: unsupported type: chan int"`},
		"not a number":  {0, []any{"f", math.Inf(1)}, ``, `"f":"+Inf"`},
		"odd":           {0, []any{"a"}, `!BADKEY="a"`, `"!BADKEY":"a"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, _, line := record(c.level, "m", c.kv...)
			text := written(t, false, nil, r)
			want := strings.NewReplacer("PID", fmt.Sprintf("%7d", os.Getpid()), "LINE", fmt.Sprint(line)).Replace(c.text)
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %s", text, want)
			}
			if got := written(t, true, nil, r); !strings.Contains(got, c.json) {
				t.Errorf("%s has no %s", got, c.json)
			}
		})
	}
}

func TestWithGroup(t *testing.T) {
	var b strings.Builder
	log := slog.New(klogfmt.New(klogfmt.Config{Verbosity: klogfmt.NewVerbosity(), Info: &b, Error: &b}))
	log.With("a", 1).WithGroup("g").With("b", 2).WithGroup("").Info("m", "c", 3)
	if want := `"m" a=1 g.b=2 g.c=3` + "\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("%s does not end with %s", b.String(), want)
	}
}

func TestStreams(t *testing.T) {
	for asJSON, want := range map[bool][2]string{false: {"i v ", "w e "}, true: {"i v w ", "e "}} {
		var streams [2]strings.Builder
		v := klogfmt.NewVerbosity()
		v.Set(2)
		log := slog.New(klogfmt.New(klogfmt.Config{JSON: asJSON, Verbosity: v, Info: &streams[0], Error: &streams[1]}))
		log.Info("i")
		log.Log(t.Context(), klogfmt.V2, "v")
		log.Log(t.Context(), klogfmt.V3, "more")
		log.Warn("w")
		log.Error("e")
		parse := klogparse.Text
		if asJSON {
			parse = klogparse.JSON
		}
		for i := range streams {
			records, err := parse(streams[i].String())
			if err != nil {
				t.Fatal(err)
			}
			var got string
			for _, r := range records {
				got += r.Message + " "
			}
			if got != want[i] {
				t.Errorf("JSON %t, stream %d: %q, want %q", asJSON, i, got, want[i])
			}
		}
	}
}

func TestWriteKlogBuffer(t *testing.T) {
	var info, errs strings.Builder
	h := klogfmt.New(klogfmt.Config{Verbosity: klogfmt.NewVerbosity(), Info: &info, Error: &errs})
	for _, line := range []string{"I one\n", "W two\n", "E three\n", ""} {
		h.WriteKlogBuffer([]byte(line))
	}
	if info.String() != "I one\n" || errs.String() != "W two\nE three\n" {
		t.Errorf("info %q, errors %q", info.String(), errs.String())
	}
}

func TestModules(t *testing.T) {
	cases := map[string]struct {
		modules []klogfmt.Module
		global  int32
		want    string
	}{
		"none":               {nil, 0, "0"},
		"global":             {nil, 3, "0123"},
		"this file":          {[]klogfmt.Module{{"handler_test", 2}}, 0, "012"},
		"pattern":            {[]klogfmt.Module{{"hand*", 4}}, 1, "01234"},
		"other file":         {[]klogfmt.Module{{"handler", 9}, {"handler_test", 1}}, 0, "01"},
		"first match counts": {[]klogfmt.Module{{"*_test", 1}, {"handler_test", 4}}, 0, "01"},
		"less than global":   {[]klogfmt.Module{{"handler_test", 1}}, 3, "0123"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			v := klogfmt.NewVerbosity(c.modules...)
			v.Set(c.global)
			log := slog.New(klogfmt.New(klogfmt.Config{Verbosity: v, Info: &b, Error: &b}))
			for n := range slog.Level(6) {
				log.Log(t.Context(), -n, fmt.Sprint(int(n)))
			}
			records, err := klogparse.Text(b.String())
			if err != nil {
				t.Fatal(err)
			}
			var got string
			for _, r := range records {
				got += r.Message
			}
			if got != c.want {
				t.Errorf("logged %q, want %q", got, c.want)
			}
		})
	}
}

func TestConcurrentRecords(t *testing.T) {
	var b bytes.Buffer // races are detected
	log := slog.New(klogfmt.New(klogfmt.Config{Verbosity: klogfmt.NewVerbosity(), Info: &b, Error: &b}))
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 100 {
				log.With("worker", i).Warn("message", "text", strings.Repeat("x\n", i))
			}
		})
	}
	group.Wait()
	if records, err := klogparse.Text(b.String()); err != nil || len(records) != 800 {
		t.Errorf("%d records: %v", len(records), err)
	}
}

// FuzzRecord: any record is what klog writes, and one record to the parser.
func FuzzRecord(f *testing.F) {
	f.Add("m", "value", "err", int64(5), uint8(0))
	f.Add("a\n\"b\"", "one\ntwo\n", "x\n >\nI0102 01:02:03.000000       1 a.go:1] \"m\"\n", int64(-1), uint8(8))
	f.Add("\x00\xff\u2028", "\n", "", int64(math.MinInt64), uint8(9))
	f.Fuzz(func(t *testing.T, msg, text, failure string, number int64, level uint8) {
		if max(len(msg), len(text), len(failure)) > 4<<10 {
			t.Skip("TestLongValues has these")
		}
		l := -slog.Level(level % 10)
		if level >= 128 {
			l = slog.LevelError
		}
		kv := []any{"text", text, "number", number, "list", []string{text}, "err", errors.New(failure)}
		r, _, _ := record(l, msg, kv...)
		got := written(t, false, nil, r)
		if want := klogText(l, nil, msg, kv); got != want {
			t.Fatalf("klog writes %q, this handler %q", want, got)
		}
		records, err := klogparse.Text(got)
		if err != nil || len(records) != 1 || len(records[0].Values) != len(kv)/2 {
			t.Fatalf("%v in %q: %v", records, got, err)
		}
		line := written(t, true, nil, r)
		sameJSON(t, klogJSON(l, nil, msg, kv), line)
		records, err = klogparse.JSON(line)
		if err != nil || len(records) != 1 || len(records[0].Values) != len(kv)/2 {
			t.Fatalf("%v in %q: %v", records, line, err)
		}
	})
}

func BenchmarkHandler(b *testing.B) {
	for _, form := range []string{"text", "json"} {
		b.Run(form, func(b *testing.B) {
			log := slog.New(klogfmt.New(klogfmt.Config{JSON: form == "json", Verbosity: klogfmt.NewVerbosity(), Info: io.Discard, Error: io.Discard}))
			benchmarkLogger(b, log)
		})
	}
	b.Run("library-text", func(b *testing.B) {
		benchmarkLogger(b, slog.New(logr.ToSlogHandler(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard))))))
	})
	b.Run("library-json", func(b *testing.B) {
		log, _ := logsjson.NewJSONLogger(0, writeSyncer{io.Discard}, nil, nil)
		benchmarkLogger(b, slog.New(logr.ToSlogHandler(log)))
	})
}

func benchmarkLogger(b *testing.B, log *slog.Logger) {
	ctx := context.Background()
	b.Run("on", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			log.Info("SyncLoop ADD", "source", "api", "pod", klog.KRef("default", "web"), "count", 5, "err", io.EOF)
		}
	})
	b.Run("off", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			log.Log(ctx, klogfmt.V2, "SyncLoop ADD", "source", "api", "count", 5)
		}
	})
}
