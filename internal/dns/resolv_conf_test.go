package dns

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseResolvConf(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		want    ResolvConf
		wantErr string
	}{
		"empty":                  {text: ""},
		"servers accumulate":     {text: "nameserver 1.1.1.1\nnameserver ::1\n", want: ResolvConf{Servers: []string{"1.1.1.1", "::1"}}},
		"comment and blank":      {text: "# nameserver 9.9.9.9\n\n  nameserver 1.1.1.1  extra\n", want: ResolvConf{Servers: []string{"1.1.1.1"}}},
		"semicolon is no server": {text: ";nameserver 9.9.9.9", want: ResolvConf{}},
		"last search wins":       {text: "search a b\nsearch c. . d\n", want: ResolvConf{Searches: []string{"c", "d"}}},
		"search may be emptied":  {text: "search a\nsearch\n", want: ResolvConf{}},
		"options by name":        {text: "options ndots:1 debug\noptions ndots:7 rotate\n", want: ResolvConf{Options: []string{"ndots:7", "debug", "rotate"}}},
		"tabs, no final newline": {text: "nameserver\t1.1.1.1", want: ResolvConf{Servers: []string{"1.1.1.1"}}},
		"server without address": {text: "search a\nnameserver\n", want: ResolvConf{Searches: []string{"a"}}, wantErr: "line 2: nameserver list is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseResolvConf(strings.NewReader(c.text))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if c.wantErr == "" && err != nil || c.wantErr != "" && (err == nil || !strings.Contains(err.Error(), c.wantErr)) {
				t.Errorf("error %v, want %q", err, c.wantErr)
			}
		})
	}
}

func FuzzParseResolvConf(f *testing.F) {
	f.Add("nameserver 1.1.1.1\nsearch a. b\noptions ndots:5")
	f.Add("nameserver\nsearch .\noptions :")
	f.Fuzz(func(t *testing.T, text string) {
		conf, err := ParseResolvConf(strings.NewReader(text))
		if err != nil {
			return
		}
		// What was parsed must survive being written and read again: that is what the
		// runtime does with it.
		var b strings.Builder
		for _, s := range conf.Servers {
			b.WriteString("nameserver " + s + "\n")
		}
		b.WriteString("search " + strings.Join(conf.Searches, " ") + "\n")
		b.WriteString("options " + strings.Join(conf.Options, " ") + "\n")
		again, err := ParseResolvConf(strings.NewReader(b.String()))
		if err != nil {
			t.Fatalf("second reading of %q: %v", b.String(), err)
		}
		if len(again.Servers) != len(conf.Servers) || len(again.Options) != len(conf.Options) {
			t.Errorf("%+v became %+v", conf, again)
		}
	})
}
