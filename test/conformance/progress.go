package conformance

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
)

// testDone matches ginkgo's line about a finished test. The next line has the test's name.
var testDone = regexp.MustCompile(`^• (\[FAILED\] )?\[([0-9.]+) seconds\]`)

// progress reads ginkgo's output and prints one line per test.
type progress struct {
	w       io.Writer
	side    string // two may run at the same time
	rest    []byte
	outcome string // of the test whose name is in the next line; empty: none
}

func (p *progress) Write(data []byte) (int, error) {
	p.rest = append(p.rest, data...)
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte("\n"))
		if !whole {
			return len(data), nil
		}
		p.rest = rest
		p.line(string(line))
	}
}

func (p *progress) line(text string) {
	if p.outcome != "" {
		fmt.Fprintf(p.w, "%-9s %s %s\n", p.side, p.outcome, text)
		p.outcome = ""
		return
	}
	match := testDone.FindStringSubmatch(text)
	if match == nil {
		return
	}
	word := passed
	if match[1] != "" {
		word = failed
	}
	p.outcome = fmt.Sprintf("%-6s %7.7s s", word, match[2])
}
