package apifaults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsWatch reports whether the request is a watch.
func IsWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// kindOf is the method of a request, or WATCH, and the kind of its object.
func kindOf(r *http.Request) string {
	method := r.Method
	if IsWatch(r) {
		method = "WATCH"
	}
	kinds := []string{"pods", "nodes", "leases", "events", "configmaps", "secrets", "serviceaccounts", "services", "tokenreviews", "subjectaccessreviews"}
	parts := strings.Split(r.URL.Path, "/")
	for i := len(parts) - 1; i >= 0; i-- {
		for _, kind := range kinds {
			if parts[i] == kind {
				return method + " " + kind
			}
		}
	}
	return method + " other"
}

// fail responds with an error as the API server encodes it.
func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status(code, reason, message)) // fails only when the node has disconnected
}

func status(code int, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}
}

// TooManyRequests rejects all requests with 429 and Retry-After.
func TooManyRequests(retryAfter time.Duration) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Retry-After", fmt.Sprint(int(retryAfter.Seconds())))
		fail(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later")
	}
}

// Failing responds to all requests with an error of the API server.
func Failing(code int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		fail(w, code, metav1.StatusReasonInternalError, "injected fault")
	}
}

// FailingGateway responds to all requests as a load balancer without a backend.
func FailingGateway(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = w.Write([]byte("<html><body><h1>502 Bad Gateway</h1></body></html>"))
}

// Hanging accepts requests and never responds.
func Hanging(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }

// Cutting closes the connection in place of a response.
func Cutting(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// Unauthorized rejects all requests with 401.
func Unauthorized(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	fail(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
}

// RequireToken rejects requests without the bearer token that valid returns.
func RequireToken(valid func() string) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Header.Get("Authorization") != "Bearer "+valid() {
			Unauthorized(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// GoneWatches rejects watches with 410 and passes other requests.
func GoneWatches(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if !IsWatch(r) {
		next.ServeHTTP(w, r)
		return
	}
	fail(w, http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
}

// ExpiredWatches ends every watch at once with an event that its resource version is too old.
func ExpiredWatches(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if !IsWatch(r) {
		next.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "ERROR",
		"object": status(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")})
}

// SlowWatches delays each part of the responses to watches.
func SlowWatches(delay time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !IsWatch(r) {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(&slowWriter{ResponseWriter: w, request: r, delay: delay}, r)
	}
}

// slowWriter writes a few bytes at a time.
type slowWriter struct {
	http.ResponseWriter
	request *http.Request
	delay   time.Duration
}

func (w *slowWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

const slowBytes = 256

func (w *slowWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		select {
		case <-time.After(w.delay):
		case <-w.request.Context().Done():
			return written, w.request.Context().Err()
		}
		n, err := w.ResponseWriter.Write(p[:min(slowBytes, len(p))])
		if written += n; err != nil {
			return written, err
		}
		if err := http.NewResponseController(w.ResponseWriter).Flush(); err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}
