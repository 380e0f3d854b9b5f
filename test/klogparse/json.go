package klogparse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var shortCaller = regexp.MustCompile(`^(?:[\w.@-]+/[\w.-]+\.go|\?\?\?):\d+$`)

// JSON parses a log of JSON lines.
func JSON(log string) ([]Record, error) {
	var records []Record
	number := 0
	for line := range strings.Lines(log) {
		number++
		r, err := parseJSON(line)
		if err != nil {
			return records, fmt.Errorf("line %d: %w: %s", number, err, line)
		}
		records = append(records, r)
	}
	return records, nil
}

func parseJSON(line string) (Record, error) {
	if !strings.HasSuffix(line, "}\n") {
		return Record{}, errors.New("not one object on one line")
	}
	var head struct {
		TS     *float64 `json:"ts"`
		Caller string   `json:"caller"`
		Msg    *string  `json:"msg"`
		V      *int     `json:"v"`
	}
	r := Record{Severity: "E", Verbosity: -1, Structured: true}
	if err := errors.Join(strictJSON(line, &head), strictJSON(line, &r.Values)); err != nil {
		return r, err
	}
	switch {
	case !strings.HasPrefix(line, `{"ts":`) || head.TS == nil || *head.TS < 1e12:
		return r, errors.New("ts is not milliseconds")
	case !shortCaller.MatchString(head.Caller):
		return r, fmt.Errorf("caller %q is not dir/file.go:line", head.Caller)
	case head.Msg == nil:
		return r, errors.New("no msg")
	}
	r.Caller, r.Message = head.Caller, *head.Msg
	if head.V != nil {
		r.Severity, r.Verbosity = "I", *head.V
	}
	for _, key := range []string{"ts", "caller", "msg", "v"} {
		delete(r.Values, key)
	}
	return r, nil
}

func strictJSON(line string, into any) error {
	decoder := json.NewDecoder(bytes.NewReader([]byte(line)))
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if rest := line[decoder.InputOffset():]; rest != "\n" {
		return fmt.Errorf("%q after the object", rest)
	}
	return nil
}
