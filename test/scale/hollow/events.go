package hollow

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// withoutEvents answers requests that write events without sending them.
type withoutEvents struct{ next http.RoundTripper }

func (t withoutEvents) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || !isEvents(r.URL.Path) {
		return t.next.RoundTrip(r)
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	answer := &http.Response{
		Status: "201 Created", StatusCode: http.StatusCreated, Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor,
		Header: http.Header{"Content-Type": {r.Header.Get("Content-Type")}}, Request: r,
	}
	if r.Method != http.MethodPost { // a patch has no object to return; the recorder then creates the event
		answer.Status, answer.StatusCode, body = "404 Not Found", http.StatusNotFound, nil
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return answer, nil
}

// isEvents reports whether a path is that of events.
func isEvents(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		if part == "namespaces" && i+2 < len(parts) {
			return parts[i+2] == "events"
		}
	}
	return false
}
