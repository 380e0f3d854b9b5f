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

// Meters are the instruments of a Server; each may be nil.
type Meters struct {
	// Request is called at the start of each request; the server calls done at its end.
	Request func(Request) (done func())
	// WebSocket counts streams over WebSockets by subresource.
	WebSocket meter.CountOf
	// ClientCertificate observes the remaining lifetime of client certificates.
	ClientCertificate meter.Timing
	// TokenReview and AccessReview observe the duration of reviews by status code.
	TokenReview, AccessReview meter.TimingOf
	// TokenCache are the instruments of the token cache.
	TokenCache CacheMeters
	// Rejected counts work by reason that was rejected because its client was not authorized yet.
	Rejected meter.CountOf
}

// Instruments makes the instruments of a Server. *metrics.Metrics does.
type Instruments interface {
	HTTP() func(readOnly bool, method, path string, longRunning bool) (done func())
	WebSockets() meter.CountOf
	ClientCertificateExpiration() meter.Timing
	Reviews() (token, access meter.TimingOf)
	TokenCache() (lookup meter.TimingOf, fetched meter.CountOf, activeFetch func(status string) (done func()))
	RejectedClients() meter.CountOf
}

// NewMeters makes all of a Server's instruments.
func NewMeters(i Instruments) Meters {
	begin := i.HTTP()
	m := Meters{
		Request:           func(r Request) func() { return begin(r.ReadOnly, r.Method, r.Path, r.LongRunning) },
		WebSocket:         i.WebSockets(),
		ClientCertificate: i.ClientCertificateExpiration(),
		Rejected:          i.RejectedClients(),
	}
	m.TokenReview, m.AccessReview = i.Reviews()
	m.TokenCache.Lookup, m.TokenCache.Fetched, m.TokenCache.ActiveFetch = i.TokenCache()
	return m
}

// CacheMeters are the instruments of a cache of reviews; each may be nil.
type CacheMeters struct {
	// Lookup observes the duration of lookups by "hit" or "miss".
	Lookup meter.TimingOf
	// Fetched counts fetches from the API server by "ok" or "error". ActiveFetch is called when a
	// request starts a fetch ("in_flight") or waits for one ("blocked"); the cache calls done
	// when that ends.
	Fetched     meter.CountOf
	ActiveFetch func(status string) (done func())
}

func (m CacheMeters) activeFetch(status string) (done func()) {
	if m.ActiveFetch == nil {
		return func() {}
	}
	return m.ActiveFetch(status)
}

// Request holds the labels of a request.
type Request struct {
	ReadOnly    bool   // received on the read-only port
	Method      string // or "other"
	Path        string // the first segment, or "other"
	LongRunning bool
}

// methodLabels are the values of the method label besides "other". As with paths, a client
// must not be able to add values.
var methodLabels = []string{"OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT"}

// pathLabels maps each value of the path label to whether such requests are long-running.
func pathLabels(table []route) map[string]bool {
	labels := map[string]bool{}
	for _, r := range table {
		if !r.traits.has(unlabelled) {
			labels[pathLabel(r.path)] = r.traits.has(longRunning)
		}
	}
	return labels
}

// withMetrics measures all requests to next, denied ones too.
func (s *Server) withMetrics(readOnly bool, next http.Handler) http.Handler {
	begin := s.deps.Meters.Request
	if begin == nil {
		return next
	}
	labels := pathLabels(s.routes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method, path := r.Method, pathLabel(r.URL.Path)
		long, known := labels[path]
		if !known {
			path = "other"
		}
		if !slices.Contains(methodLabels, method) {
			method = "other"
		}
		defer begin(Request{ReadOnly: readOnly, Method: method, Path: path, LongRunning: long})()
		next.ServeHTTP(w, r)
	})
}

// pathLabel is the first segment of a path, or the first two of metrics.
func pathLabel(path string) string {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if first != "metrics" || rest == "" {
		return first
	}
	second, _, _ := strings.Cut(rest, "/")
	return first + "/" + second
}

// observeReview records the duration of a review by its status code.
func observeReview(duration meter.TimingOf, took time.Duration, err error) {
	code := strconv.Itoa(http.StatusCreated)
	if err != nil {
		code = "<error>"
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Code != 0 {
			code = strconv.Itoa(int(status.Status().Code))
		}
	}
	duration.Took(code, took)
}
