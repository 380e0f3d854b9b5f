// Package klogparse parses logs of Kubernetes components strictly: klog's text form and the JSON form of
// k8s.io/component-base. Tests parse the logs of both kubelets with it.
package klogparse

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Record is one log record.
type Record struct {
	// Severity is I, W, E or F. In JSON it is I or E: I if the record has a verbosity.
	Severity string
	// Verbosity is -1 in text, which does not have it, and on errors.
	Verbosity int
	Caller    string // file:line, in JSON with the file's directory
	Message   string
	// Structured is false for lines of klog's Infof, Warningf and so on in text.
	Structured bool
	// Values are strings, and values of encoding/json.
	Values map[string]any
}

var header = regexp.MustCompile(`^([IWEF])(\d{4}) (\d\d:\d\d:\d\d\.\d{6}) ([ \d]{6}\d+) ((?:[\w.-]+\.go|\?\?\?):\d+)\] `)

// Text parses a log in klog's text form. Lines that do not belong to a record are errors.
func Text(log string) ([]Record, error) {
	var records []Record
	for line := 1; log != ""; {
		r, rest, err := parseText(log)
		if err != nil {
			first, _, _ := strings.Cut(log, "\n")
			return records, fmt.Errorf("line %d: %w: %s", line, err, first)
		}
		records = append(records, r)
		line += strings.Count(log[:len(log)-len(rest)], "\n")
		log = rest
	}
	return records, nil
}

func parseText(log string) (r Record, rest string, err error) {
	found := header.FindStringSubmatch(log)
	if found == nil {
		return r, "", errors.New("no klog header")
	}
	r = Record{Severity: found[1], Verbosity: -1, Caller: found[5], Values: map[string]any{}}
	rest = log[len(found[0]):]
	if !strings.HasPrefix(rest, `"`) {
		return parseUnstructured(r, rest)
	}
	r.Structured = true
	if r.Message, rest, err = cutQuoted(rest); err != nil {
		return r, "", fmt.Errorf("message: %w", err)
	}
	for !strings.HasPrefix(rest, "\n") {
		var key string
		var value any
		if key, value, rest, err = cutPair(rest); err != nil {
			return r, "", err
		}
		if _, twice := r.Values[key]; twice {
			return r, "", fmt.Errorf("key %s twice", key)
		}
		r.Values[key] = value
	}
	return r, rest[1:], nil
}

// parseUnstructured reads the lines up to the next header.
func parseUnstructured(r Record, text string) (Record, string, error) {
	for rest := text; ; {
		_, after, ended := strings.Cut(rest, "\n")
		if !ended {
			return r, "", errors.New("no line break at the end")
		}
		if after == "" || header.MatchString(after) {
			r.Message = text[:len(text)-len(after)-1]
			return r, after, nil
		}
		rest = after
	}
}

var pairKey = regexp.MustCompile(`^ ([^\s="]+)=`)

func cutPair(text string) (key string, value any, rest string, err error) {
	found := pairKey.FindStringSubmatch(text)
	if found == nil {
		first, _, _ := strings.Cut(text, "\n")
		return "", nil, "", fmt.Errorf("no key at %q", first)
	}
	key, text = found[1], text[len(found[0]):]
	switch {
	case strings.HasPrefix(text, `"`):
		value, rest, err = cutQuoted(text)
	case strings.HasPrefix(text, "<\n"):
		value, rest, err = cutLines(text[2:])
	default:
		value, rest, err = cutJSON(text)
	}
	if err != nil {
		err = fmt.Errorf("value of %s: %w", key, err)
	}
	return key, value, rest, err
}

func cutQuoted(text string) (value, rest string, err error) {
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", "", err
	}
	value, err = strconv.Unquote(quoted)
	return value, text[len(quoted):], err
}

// cutLines reads lines that begin with a tab, up to the end mark.
func cutLines(text string) (value, rest string, err error) {
	var b strings.Builder
	for {
		if rest, ended := strings.CutPrefix(text, " >"); ended {
			return strings.TrimSuffix(b.String(), "\n"), rest, nil
		}
		line, after, ok := strings.Cut(text, "\n")
		if !ok || !strings.HasPrefix(line, "\t") {
			return "", "", errors.New("several lines without end mark")
		}
		b.WriteString(line[1:] + "\n")
		text = after
	}
}

func cutJSON(text string) (value any, rest string, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	if err := decoder.Decode(&value); err != nil {
		return nil, "", err
	}
	return value, text[decoder.InputOffset():], nil
}
