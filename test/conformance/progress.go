package conformance

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
)

// ended is the line by which ginkgo says that a test is over; the next line names it.
var ended = regexp.MustCompile(`^• (\[FAILED\] )?\[([0-9.]+) seconds\]`)

// progress reads ginkgo's output and tells of each test in a line of its own.
type progress struct {
	w       io.Writer
	who     string // whose kubelet: two may run at a time
	rest    []byte
	outcome string // of the test that the next line names; empty: none
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
		fmt.Fprintf(p.w, "%-9s %s %s\n", p.who, p.outcome, text)
		p.outcome = ""
		return
	}
	match := ended.FindStringSubmatch(text)
	if match == nil {
		return
	}
	word := passed
	if match[1] != "" {
		word = failed
	}
	p.outcome = fmt.Sprintf("%-6s %7.7s s", word, match[2])
}
