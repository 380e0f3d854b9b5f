package klogfmt_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"swiftlet/internal/klogfmt"
	"swiftlet/test/klogparse"
)

// TestLimiter: a cause may log 200 records, then one a second; others are not affected.
func TestLimiter(t *testing.T) {
	var out strings.Builder
	v := klogfmt.NewVerbosity()
	v.Set(3)
	h := klogfmt.New(klogfmt.Config{Verbosity: v, Info: &out, Error: &out, Limiter: klogfmt.NewLimiter()})
	now := at
	var pcs [2]uintptr
	runtime.Callers(1, pcs[:])
	log := func(level slog.Level, source uintptr, msg string, kv ...any) {
		r := slog.NewRecord(now, level, msg, source)
		r.Add(kv...)
		if err := h.Handle(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		log(slog.LevelWarn, pcs[0], "flood", "client", i)
	}
	log(slog.LevelWarn, pcs[1], "other source")
	for _, name := range []string{"a", "b"} {
		for range 300 {
			log(klogfmt.V2, pcs[0], "flood of "+name, slog.Group("", "pod", klog.KRef("ns", name), "podUID", name))
		}
	}
	for range 300 {
		log(klogfmt.V3, pcs[0], "debug")
	}
	now = now.Add(-time.Hour) // steps of the clock are no budget
	log(slog.LevelWarn, pcs[0], "flood", "client", "back")
	now = now.Add(3 * time.Second)
	for range 10 {
		log(slog.LevelWarn, pcs[0], "flood", "client", "later")
	}
	records, err := klogparse.Text(out.String())
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	suppressed := ""
	for _, r := range records {
		count[r.Message]++
		if n, ok := r.Values["suppressed"]; ok {
			suppressed += fmt.Sprint(r.Message, n, " ")
		}
	}
	for message, want := range map[string]int{"flood": 203, "other source": 1, "flood of a": 200, "flood of b": 200, "debug": 300} {
		if count[message] != want {
			t.Errorf("%s: %d records, want %d", message, count[message], want)
		}
	}
	if suppressed != "flood801 " {
		t.Errorf("suppressed: %s", suppressed)
	}
}

func TestLimiterOfKlog(t *testing.T) {
	var out strings.Builder
	h := klogfmt.New(klogfmt.Config{Verbosity: klogfmt.NewVerbosity(), Info: &out, Error: &out, Limiter: klogfmt.NewLimiter()})
	for i := range 1000 {
		h.WriteKlogBuffer([]byte(fmt.Sprintf("E0108 01:02:03.000004 %7d reflector.go:12] watch failed %d\n", 5, i)))
	}
	h.WriteKlogBuffer([]byte("E0108 01:02:03.000004       5 reflector.go:13] other\n"))
	if n := strings.Count(out.String(), "\n"); n < 200 || n > 250 || !strings.Contains(out.String(), "other") {
		t.Errorf("%d lines", n)
	}
}

// TestLongValues: no record is longer than its values may be.
func TestLongValues(t *testing.T) {
	long := strings.Repeat("\x01", 1<<20)
	for name, value := range map[string]any{
		"string": long, "lines": strings.Repeat("\n", 1<<20), "bytes": []byte(long), "error": fmt.Errorf("%s", long),
		"struct": plain{Name: long}, "list": []string{long, long}, "marshaler": marshaler{long}, "stringer": klog.KRef("ns", long),
	} {
		for form, asJSON := range map[string]bool{"text": false, "JSON": true} {
			r, _, _ := record(slog.LevelError, "m", "before", 1, "key", value, "after", 2)
			got := written(t, asJSON, nil, r)
			parse := klogparse.Text
			if asJSON {
				parse = klogparse.JSON
			}
			records, err := parse(got)
			if err != nil || len(records) != 1 || len(records[0].Values) != 3 {
				t.Errorf("%s, %s: %.300v: %v", name, form, records, err)
			}
			if len(got) > 256<<10 {
				t.Errorf("%s, %s: %d bytes", name, form, len(got))
			}
		}
	}
	r, _, _ := record(slog.LevelError, long)
	if got := written(t, false, nil, r); len(got) > 256<<10 {
		t.Errorf("message: %d bytes", len(got))
	}
}
