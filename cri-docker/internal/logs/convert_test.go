package logs

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

func TestConvert(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"line":             {`{"log":"hello\n","stream":"stdout","time":"2026-01-02T03:04:05.000000006Z"}`, "2026-01-02T03:04:05.000000006Z stdout F hello\n"},
		"error_stream":     {`{"log":"hello\n","stream":"stderr","time":"2026-01-02T03:04:05.1Z"}`, "2026-01-02T03:04:05.1Z stderr F hello\n"},
		"partial":          {`{"log":"hel","stream":"stdout","time":"2026-01-02T03:04:05.1Z"}`, "2026-01-02T03:04:05.1Z stdout P hel\n"},
		"empty_line":       {`{"log":"\n","stream":"stdout","time":"2026-01-02T03:04:05Z"}`, "2026-01-02T03:04:05Z stdout F \n"},
		"carriage_return":  {`{"log":"a\r\n","stream":"stdout","time":"2026-01-02T03:04:05Z"}`, "2026-01-02T03:04:05Z stdout F a\r\n"},
		"newline_inside":   {`{"log":"a\nb\n","stream":"stdout","time":"2026-01-02T03:04:05Z"}`, "2026-01-02T03:04:05Z stdout F a b\n"},
		"other_time_zone":  {`{"log":"a\n","stream":"stdout","time":"2026-01-02T03:04:05+02:00"}`, "2026-01-02T01:04:05Z stdout F a\n"},
		"further_fields":   {`{"log":"a\n","stream":"stdout","attrs":{"x":"y"},"time":"2026-01-02T03:04:05Z"}`, "2026-01-02T03:04:05Z stdout F a\n"},
		"escaped":          {`{"log":"\u003cü\"\n","stream":"stdout","time":"2026-01-02T03:04:05Z"}`, "2026-01-02T03:04:05Z stdout F <ü\"\n"},
		"unknown_stream":   {`{"log":"a\n","stream":"stdin","time":"2026-01-02T03:04:05Z"}`, `convert log: unknown stream "stdin"`},
		"cut_off":          {`{"log":"a\n","str`, "convert log: unexpected end of JSON input"},
		"not_json":         {"\x00\x00\x00", `convert log: invalid character '\x00' looking for beginning of value`},
		"nothing_but_time": {`{}`, `convert log: unknown stream ""`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := convert(nil, []byte(test.line))
			got := string(out)
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("%q; want %q", got, test.want)
			}
		})
	}
}

func convert(to, line []byte) ([]byte, error) {
	e, err := parse(line)
	if err != nil {
		return to, err
	}
	return e.append(to), nil
}

var criLine = regexp.MustCompile(`(?s)\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z (stdout|stderr) [FP] [^\n]*\n\z`)

// FuzzConvert: whatever Docker wrote, the output is one line of the CRI's format or nothing, and a line that
// Docker can write keeps its text.
func FuzzConvert(f *testing.F) {
	f.Add([]byte(`{"log":"hello\n","stream":"stdout","time":"2026-01-02T03:04:05.000000006Z"}`), "text")
	f.Add([]byte(`{"log":1}`), "a\n")
	f.Fuzz(func(t *testing.T, line []byte, text string) {
		before := []byte("before")
		out, err := convert(before, line)
		if !bytes.HasPrefix(out, before) || err != nil && len(out) != len(before) {
			t.Fatalf("%q after %q, %v", out, before, err)
		}
		if err == nil && !criLine.Match(out[len(before):]) {
			t.Fatalf("%q becomes %q", line, out[len(before):])
		}
		text = strings.ToValidUTF8(strings.ReplaceAll(text, "\n", ""), "")
		written, err := json.Marshal(map[string]string{"log": text + "\n", "stream": "stderr", "time": "2026-01-02T03:04:05.000000006Z"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := convert(nil, written)
		if want := "2026-01-02T03:04:05.000000006Z stderr F " + text + "\n"; err != nil || string(got) != want {
			t.Fatalf("%q becomes %q, %v; want %q", written, got, err, want)
		}
	})
}
