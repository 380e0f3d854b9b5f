package conformance

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// testDone matches ginkgo's line about a finished test. The next line has the test's name.
var testDone = regexp.MustCompile(`^• (\[FAILED\] )?\[([0-9.]+) seconds\]`)

// failedNode is what ginkgo adds to the name of a failed test: the node of the suite that has failed.
var failedNode = regexp.MustCompile(` \[(It|BeforeEach|AfterEach|DeferCleanup \(Each\)|JustBeforeEach|JustAfterEach)\]`)

// progress reads ginkgo's output, prints one line per test, and keeps the outcomes: ginkgo writes its report at the end,
// and none if it is killed.
type progress struct {
	w       io.Writer
	side    string // two may run at the same time
	rest    []byte
	outcome string // of the test whose name is in the next line; empty: none
	state   string // of that test
	seconds float64

	names map[string]bool // of the tests that are run
	done  []Outcome
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
		if name := p.name(text); name != "" {
			p.done = append(p.done, Outcome{Test: name, State: p.state, Seconds: p.seconds})
		}
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
	p.state = word
	p.seconds, _ = strconv.ParseFloat(match[2], 64) // the pattern allows only numbers
	p.outcome = fmt.Sprintf("%-6s %7.7s s", word, match[2])
}

// name finds the test of a line, which has the name and then the labels in brackets. It is empty if there is none.
func (p *progress) name(line string) string {
	for _, text := range []string{line, failedNode.ReplaceAllString(line, "")} {
		for text != "" {
			if p.names[text] {
				return text
			}
			text = text[:max(0, strings.LastIndex(text, " ["))]
		}
	}
	return ""
}
