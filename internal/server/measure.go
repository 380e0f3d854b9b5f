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

// What the reference kubelet tells apart; a client must not be able to make up more.
var (
	measuredMethods = []string{"OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT"}
	measuredPaths   = []string{
		"healthz", "pods", "stats", "metrics", "metrics/cadvisor", "metrics/probes", "metrics/resource",
		"run", "exec", "attach", "portForward", "containerLogs", "configz", "allocatedPods", "runningpods",
		"checkpoint", "logs", "debug", "statusz", "flagz",
	}
	// Port-forwards do not count as such there.
	longRunningPaths = []string{"exec", "attach", "debug"}
)

// measured tells of the requests to next, those that next refuses too.
func (s *Server) measured(readOnly bool, next http.Handler) http.Handler {
	begin := s.deps.Meters.Request
	if begin == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := known(measuredPaths, rootOf(r.URL.Path))
		defer begin(Request{
			ReadOnly:    readOnly,
			Method:      known(measuredMethods, r.Method),
			Path:        path,
			LongRunning: slices.Contains(longRunningPaths, path),
		})()
		next.ServeHTTP(w, r)
	})
}

func known(list []string, word string) string {
	if slices.Contains(list, word) {
		return word
	}
	return "other"
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
