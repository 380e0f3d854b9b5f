package server

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"swiftlet/internal/meter"
)

// Meters measure the server's work; each may be nil.
type Meters struct {
	// Request is told of each request as it begins; what it returns is called at its end.
	Request func(Request) (done func())
	// WebSocket counts the streams over WebSockets, by subresource.
	WebSocket meter.CountOf
	// Certificate takes how long the client certificates that were shown are still good for.
	Certificate meter.Timing
	// TokenReview and AccessReview take the questions to the API server, by status code.
	TokenReview, AccessReview meter.TimingOf
	// Tokens measures the memory of answers about tokens.
	Tokens CacheMeters
}

// CacheMeters measure a memory of answers; each may be nil.
type CacheMeters struct {
	// Asked takes how long it took to have an answer, by "hit" or "miss".
	Asked meter.TimingOf
	// Fetched counts the questions that were passed on, by "ok" or "error". Waiting is told
	// of each that begins to wait, as the one who fetches ("in_flight") or with it
	// ("blocked"); what it returns is called at the end of that.
	Fetched meter.CountOf
	Waiting func(how string) (done func())
}

func (m CacheMeters) waiting(how string) (done func()) {
	if m.Waiting == nil {
		return func() {}
	}
	return m.Waiting(how)
}

// Request is what is told apart of requests.
type Request struct {
	ReadOnly    bool   // it came to the read-only port
	Method      string // or "other"
	Path        string // its first part, or "other"
	LongRunning bool
}

// measuredMethods are the values of the method label besides "other". As with paths, a client
// must not be able to add values.
var measuredMethods = []string{"OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT"}

// pathLabels maps each value of the path label to whether such requests are long-running.
func pathLabels(table []route) map[string]bool {
	labels := map[string]bool{}
	for _, r := range table {
		if !r.traits.has(unlabelled) {
			labels[rootOf(r.path)] = r.traits.has(longRunning)
		}
	}
	return labels
}

// measured tells of the requests to next, those that next refuses too.
func (s *Server) measured(readOnly bool, next http.Handler) http.Handler {
	begin := s.deps.Meters.Request
	if begin == nil {
		return next
	}
	labels := pathLabels(s.routes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method, path := r.Method, rootOf(r.URL.Path)
		long, known := labels[path]
		if !known {
			path = "other"
		}
		if !slices.Contains(measuredMethods, method) {
			method = "other"
		}
		defer begin(Request{ReadOnly: readOnly, Method: method, Path: path, LongRunning: long})()
		next.ServeHTTP(w, r)
	})
}

// rootOf is the first part of a path; there are several kinds of metrics.
func rootOf(path string) string {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if first != "metrics" || rest == "" {
		return first
	}
	second, _, _ := strings.Cut(rest, "/")
	return first + "/" + second
}

// reviewed tells of a question to the API server.
func reviewed(took meter.TimingOf, began, now time.Time, err error) {
	code := strconv.Itoa(http.StatusCreated)
	if err != nil {
		code = "<error>"
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Code != 0 {
			code = strconv.Itoa(int(status.Status().Code))
		}
	}
	took.Took(code, now.Sub(began))
}
