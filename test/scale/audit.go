package scale

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// request is a request of a node, as the API server has logged it.
type request struct {
	at   time.Time // when it was answered; of a watch, when it began
	node string
	what string // as "patch pods/status"
	code int
}

// auditLog reads the API server's audit log, which has the requests of nodes only.
type auditLog struct {
	path     string
	offset   int64
	names    map[string]string // equal strings are kept once: there are many requests
	requests []request
}

func newAuditLog(path string) *auditLog { return &auditLog{path: path, names: map[string]string{}} }

// read adds the lines that are new since the last read.
func (a *auditLog) read() error {
	file, err := os.Open(a.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the API server creates it with the first line
	}
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // the last line may be incomplete
	a.offset += int64(len(text))
	for line := range bytes.Lines(text) {
		if err := a.add(line); err != nil {
			return err
		}
	}
	return nil
}

// add adds one line.
func (a *auditLog) add(line []byte) error {
	var event struct {
		Stage          string
		StageTimestamp time.Time
		Verb           string
		User           struct{ Username string }
		ObjectRef      struct{ Resource, Subresource string }
		ResponseStatus struct{ Code int }
		RequestURI     string
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return fmt.Errorf("parse audit log: %w", err)
	}
	node, isNode := strings.CutPrefix(event.User.Username, "system:node:")
	counted := "ResponseComplete"
	if event.Verb == "watch" {
		counted = "ResponseStarted" // it completes when it ends, which may be later than the run
	}
	if !isNode || event.Stage != counted {
		return nil
	}
	path, parameters, _ := strings.Cut(event.RequestURI, "?")
	verb := event.Verb
	if verb == "watch" && strings.Contains(parameters, "sendInitialEvents=true") {
		verb = "watch-list" // it begins with all objects, like a list
	}
	what := verb + " " + event.ObjectRef.Resource
	if event.ObjectRef.Resource == "" {
		what = verb + " " + path
	}
	if event.ObjectRef.Subresource != "" {
		what += "/" + event.ObjectRef.Subresource
	}
	a.requests = append(a.requests, request{at: event.StageTimestamp, node: a.name(node), what: a.name(what), code: event.ResponseStatus.Code})
	return nil
}

func (a *auditLog) name(s string) string {
	if kept, ok := a.names[s]; ok {
		return kept
	}
	a.names[s] = strings.Clone(s)
	return a.names[s]
}

// disorder is how far two lines of the log can be from the order of their times.
const disorder = time.Minute

// between returns the requests of a period. Mostly the last one is asked for, so the search begins at the end.
func (a *auditLog) between(from, to time.Time) requests {
	first := len(a.requests)
	for first > 0 && a.requests[first-1].at.After(from.Add(-disorder)) {
		first--
	}
	return requests(a.requests[first:]).where(func(r request) bool { return !r.at.Before(from) && r.at.Before(to) })
}
