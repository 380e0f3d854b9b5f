package standalone

import (
	"bytes"
	"strings"
	"testing"
)

// TestShowLink: a token is printed on a terminal alone, as any other output may be a log.
func TestShowLink(t *testing.T) {
	terminal := func() int { return 24 }
	for name, c := range map[string]struct {
		page bool
		rows func() int
		want string
	}{
		"terminal":          {true, terminal, "swiftlet: the page of this node: https://127.0.0.1:10250/ui/login?token=x\n"},
		"log":               {true, nil, "swiftlet: `swiftlet ui` prints a link to the page of this node\n"},
		"off":               {false, terminal, ""},
		"off without table": {false, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := Supervisor{cfg: Config{Port: 10250, Page: c.page}, deps: Deps{Out: &out, Rows: c.rows, Link: func() string { return "/ui/login?token=x" }}}
			s.showLink()
			if got := out.String(); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" || c.rows == nil && strings.Contains(got, "token") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
