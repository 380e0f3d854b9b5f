package clip

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 0, ""},
		{"short", 5, "short"},
		{strings.Repeat("x", 100), 30, strings.Repeat("x", 30-len("… (truncated)")) + "… (truncated)"},
		{strings.Repeat("ü", 50), 30, strings.Repeat("ü", 7) + "… (truncated)"},
		{strings.Repeat("世", 40), 30, strings.Repeat("世", 5) + "… (truncated)"},
		{strings.Repeat("x", 100), 3, "xxx"},
		{"世界", 4, "世"},
		{"世界", 2, ""},
		{strings.Repeat("\xff", 100), 20, "\xff\xff\xff\xff\xff… (truncated)"},
	} {
		if got := Text(c.text, c.limit); got != c.want {
			t.Errorf("Text(%.20q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
		if got := Text([]byte(c.text), c.limit); got != c.want {
			t.Errorf("Text of bytes (%.20q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("世界", 4)
	f.Add(strings.Repeat("ü", 50), 30)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 0 {
			return
		}
		got := Text(text, limit)
		if len(got) > limit || utf8.ValidString(text) && !utf8.ValidString(got) || len(text) <= limit && got != text {
			t.Errorf("Text(%q, %d) = %q", text, limit, got)
		}
	})
}

func TestError(t *testing.T) {
	if Error(nil, 5) != nil || Error(io.EOF, 5) != io.EOF {
		t.Error("a short error is changed")
	}
	long := Error(fmt.Errorf("%s: %w", strings.Repeat("x", 100), io.EOF), 50)
	if len(long.Error()) > 50 || !errors.Is(long, io.EOF) {
		t.Errorf("%v", long)
	}
}

func TestBuffer(t *testing.T) {
	b := NewBuffer(5)
	for _, p := range []string{"abc", "", "de"} {
		if n, err := b.Write([]byte(p)); n != len(p) || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	}
	if string(b.Bytes()) != "abcde" || b.Full() {
		t.Errorf("%s, full %t", b.Bytes(), b.Full())
	}
	if n, err := b.Write([]byte("fgh")); n != 3 || err != nil || string(b.Bytes()) != "abcde" || !b.Full() {
		t.Errorf("%d, %v, %s, full %t", n, err, b.Bytes(), b.Full())
	}
}
