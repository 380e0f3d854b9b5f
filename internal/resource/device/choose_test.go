package device

import (
	"errors"
	"slices"
	"testing"
)

func TestChoose(t *testing.T) {
	abc := []string{"a", "b", "c"}
	for name, c := range map[string]struct {
		supply supply
		want   int
		prefer []string
		among  []string // what the plugin is to be asked about, with what is taken
		got    []string
		err    string
	}{
		"first free":                   {supply: supply{indifferent: abc}, want: 2, got: []string{"a", "b"}},
		"preferred":                    {supply: supply{indifferent: abc}, want: 1, prefer: []string{"c"}, among: abc, got: []string{"c"}},
		"prefers too few":              {supply: supply{indifferent: abc}, want: 2, prefer: []string{"c"}, among: abc, got: []string{"c", "a"}},
		"prefers what is not":          {supply: supply{indifferent: abc}, want: 1, prefer: []string{"x"}, among: abc, got: []string{"a"}},
		"reused first":                 {supply: supply{reusable: []string{"z"}, indifferent: abc}, want: 2, got: []string{"z", "a"}},
		"reused is enough":             {supply: supply{reusable: []string{"z"}}, want: 1, got: []string{"z"}},
		"reused and preferred":         {supply: supply{reusable: []string{"z"}, indifferent: abc}, want: 2, prefer: []string{"z", "b"}, among: []string{"a", "b", "c", "z"}, got: []string{"z", "b"}},
		"aligned only":                 {supply: supply{aligned: []string{"b", "c"}, unaligned: []string{"a"}}, want: 1, prefer: []string{"a", "c"}, among: []string{"b", "c"}, got: []string{"c"}},
		"all aligned":                  {supply: supply{aligned: []string{"b", "c"}, unaligned: []string{"a"}}, want: 2, got: []string{"b", "c"}},
		"aligned and more":             {supply: supply{aligned: []string{"b"}, unaligned: []string{"d"}, indifferent: []string{"a"}}, want: 2, prefer: []string{"a"}, among: []string{"a", "b", "d"}, got: []string{"b", "a"}},
		"unaligned before indifferent": {supply: supply{unaligned: []string{"d"}, indifferent: []string{"a"}}, want: 1, got: []string{"d"}},
		"too few": {supply: supply{reusable: []string{"z"}, indifferent: abc}, want: 5,
			err: "requested number of devices unavailable for r. Requested: 4, Available: 3"},
	} {
		var ask prefer
		var among []string
		if c.prefer != nil {
			ask = func(available, _ []string, _ int) ([]string, error) { among = available; return c.prefer, nil }
		}
		got, err := c.supply.choose("r", c.want, ask)
		if !slices.Equal(got, c.got) || !slices.Equal(among, c.among) {
			t.Errorf("%s: chose %v, asked about %v; want %v, %v", name, got, among, c.got, c.among)
		}
		if text := ""; err != nil || c.err != "" {
			if err != nil {
				text = err.Error()
			}
			if text != c.err {
				t.Errorf("%s: %q, want %q", name, text, c.err)
			}
		}
	}
	if _, err := (supply{indifferent: abc}).choose("r", 1, func([]string, []string, int) ([]string, error) { return nil, errors.New("no") }); err == nil {
		t.Error("a plugin's error is lost")
	}
}
