package device

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"swiftlet/test/cputime"
)

func TestChoose(t *testing.T) {
	abc := []string{"a", "b", "c"}
	for name, c := range map[string]struct {
		supply candidates
		want   int
		prefer []string
		among  []string // available devices that the plugin gets
		got    []string
		err    string
	}{
		"first free":                    {supply: candidates{indifferent: abc}, want: 2, got: []string{"a", "b"}},
		"plugin prefers one":            {supply: candidates{indifferent: abc}, want: 1, prefer: []string{"c"}, among: abc, got: []string{"c"}},
		"plugin prefers too few":        {supply: candidates{indifferent: abc}, want: 2, prefer: []string{"c"}, among: abc, got: []string{"c", "a"}},
		"plugin prefers unknown device": {supply: candidates{indifferent: abc}, want: 1, prefer: []string{"x"}, among: abc, got: []string{"a"}},
		"reused first":                  {supply: candidates{reusable: []string{"z"}, indifferent: abc}, want: 2, got: []string{"z", "a"}},
		"reused is enough":              {supply: candidates{reusable: []string{"z"}}, want: 1, got: []string{"z"}},
		"reused and preferred":          {supply: candidates{reusable: []string{"z"}, indifferent: abc}, want: 2, prefer: []string{"z", "b"}, among: []string{"a", "b", "c", "z"}, got: []string{"z", "b"}},
		"aligned only":                  {supply: candidates{aligned: []string{"b", "c"}, unaligned: []string{"a"}}, want: 1, prefer: []string{"a", "c"}, among: []string{"b", "c"}, got: []string{"c"}},
		"all aligned":                   {supply: candidates{aligned: []string{"b", "c"}, unaligned: []string{"a"}}, want: 2, got: []string{"b", "c"}},
		"aligned, then indifferent":     {supply: candidates{aligned: []string{"b"}, unaligned: []string{"d"}, indifferent: []string{"a"}}, want: 2, prefer: []string{"a"}, among: []string{"a", "b", "d"}, got: []string{"b", "a"}},
		"unaligned before indifferent":  {supply: candidates{unaligned: []string{"d"}, indifferent: []string{"a"}}, want: 1, got: []string{"d"}},
		"too few devices": {supply: candidates{reusable: []string{"z"}, indifferent: abc}, want: 5,
			err: "requested number of devices unavailable for r. Requested: 4, Available: 3"},
	} {
		var prefer preferFunc
		var among []string
		if c.prefer != nil {
			prefer = func(available, _ []string, _ int) ([]string, error) { among = available; return c.prefer, nil }
		}
		got, err := c.supply.choose("r", c.want, prefer)
		if !slices.Equal(got, c.got) || !slices.Equal(among, c.among) {
			t.Errorf("%s: chose %v among %v; want %v, %v", name, got, among, c.got, c.among)
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
	if _, err := (candidates{indifferent: abc}).choose("r", 1, func([]string, []string, int) ([]string, error) { return nil, errors.New("no") }); err == nil {
		t.Error("the plugin's error is ignored")
	}
}

// A plugin may list as many devices as a message can have, such as one for each megabyte of a GPU. They are chosen
// with the manager locked.
func TestChooseAmongManyDevices(t *testing.T) {
	const n = 80_000
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprintf("%06d", i))
	}
	cputime.AtMost(t, 2*time.Second, func() {
		got, err := candidates{indifferent: ids}.choose("r", n, func(available, _ []string, _ int) ([]string, error) {
			return available[:n/2], nil
		})
		if err != nil || !slices.Equal(got, ids) {
			t.Errorf("chose %d devices, %v", len(got), err)
		}
	})
}
