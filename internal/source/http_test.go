package source

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
)

// page is a URL whose responses a test sets.
type page struct {
	body     string
	status   int
	etag     string
	requests []http.Header
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests = append(p.requests, r.Header)
	if p.etag != "" {
		w.Header().Set("ETag", p.etag)
		if r.Header.Get("If-None-Match") == p.etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	_, _ = w.Write([]byte(p.body))
}

func TestHTTP(t *testing.T) {
	pods := func(names ...string) string {
		var all []string
		for _, name := range names {
			all = append(all, manifestOf(name, "x"))
		}
		return strings.Join(all, "---\n")
	}
	const none = "no snapshot"
	for name, polls := range map[string][]struct {
		page   page
		want   string // names of the pods of the snapshot that is sent
		reason string // of a problem
	}{
		"pod is replaced by another": {
			{page{body: pods("a")}, "a", ""},
			{page{body: pods("a")}, none, ""},
			{page{body: pods("a", "b")}, "a b", ""},
		},
		"PodList": {
			{page{body: `{apiVersion: v1, kind: PodList, items: [{metadata: {name: a}, spec: {containers: [{name: c, image: x}]}}]}`}, "a", ""},
		},
		"empty response has no pods": {
			{page{body: ""}, "", ""},
			{page{body: pods("a")}, "a", ""},
			{page{body: ""}, "", ""},
		},
		"unavailable, available, unavailable": {
			{page{status: 503}, none, "503 Service Unavailable"},
			{page{body: pods("a")}, "a", ""},
			{page{status: 503}, none, "503 Service Unavailable"},
			{page{body: pods("a")}, none, ""},
		},
		"unchanged invalid content stays invalid": {
			{page{body: "kind: [", etag: "1"}, none, "document 1"},
			{page{body: "kind: [", etag: "1"}, none, "document 1"},
		},
		"duplicate pod": {
			{page{body: pods("a", "a")}, none, "pod default/a-node-1 is there twice"},
		},
		"not modified by ETag": {
			{page{body: pods("a"), etag: "1"}, "a", ""},
			{page{body: pods("b"), etag: "1"}, none, ""},
			{page{body: pods("b"), etag: "2"}, "b", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var current page
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { current.ServeHTTP(w, r) }))
			defer server.Close()
			out := make(chan pod.Snapshot, 1)
			h, err := NewHTTP(
				HTTPConfig{URL: server.URL, NodeName: "node-1", CheckFrequency: time.Minute, Header: http.Header{"X-Key": {"secret"}}},
				HTTPDeps{Out: out, Client: server.Client(), Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			for i, poll := range polls {
				current = poll.page
				err := h.poll(context.Background())
				if (err == nil) != (poll.reason == "") || (err != nil && !strings.Contains(err.Error(), poll.reason)) {
					t.Errorf("poll %d: problem %v, want %q", i, err, poll.reason)
				}
				if got := current.requests[0].Get("X-Key"); got != "secret" {
					t.Errorf("poll %d: header %q", i, got)
				}
				got := none
				select {
				case s := <-out:
					var names []string
					for _, p := range s.Pods {
						names = append(names, strings.TrimSuffix(p.Name, "-node-1"))
					}
					got = strings.Join(names, " ")
				default:
				}
				if got != poll.want {
					t.Errorf("poll %d: sent %q, want %q", i, got, poll.want)
				}
			}
		})
	}
}

func TestHTTPPollsRegularly(t *testing.T) {
	server := httptest.NewServer(&page{body: manifestOf("a", "x")})
	defer server.Close()
	out := make(chan pod.Snapshot)
	h, err := NewHTTP(HTTPConfig{URL: server.URL, NodeName: "node-1", CheckFrequency: time.Millisecond},
		HTTPDeps{Out: out, Client: server.Client(), Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- h.Run(ctx) }()
	if s := <-out; len(s.Pods) != 1 || s.Pods[0].Annotations["kubernetes.io/config.source"] != "http" {
		t.Errorf("pods %v", s.Pods)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The address of the manifests may have a password, and the server chooses the text of an error.
func TestHTTPErrorsAreShortAndHaveNoPassword(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"apiVersion": "` + strings.Repeat("x", 1<<20) + `"}`))
	}))
	defer server.Close()
	missing := httptest.NewServer(http.NotFoundHandler())
	defer missing.Close()
	for name, address := range map[string]string{
		"long text":   strings.Replace(server.URL, "//", "//user:canary@", 1),
		"not found":   strings.Replace(missing.URL, "//", "//user:canary@", 1),
		"unreachable": "http://user:canary@127.0.0.1:1",
		"invalid URL": "http://user:canary%@127.0.0.1:1",
	} {
		var log bytes.Buffer
		var event string
		h, err := NewHTTP(HTTPConfig{URL: address, NodeName: "node-1", CheckFrequency: time.Hour}, HTTPDeps{
			Out: make(chan pod.Snapshot), Client: server.Client(), Clock: clock.RealClock{}, Log: slog.New(slog.NewTextHandler(&log, nil)),
			OnError: func(url string, err error) { event = url + ": " + err.Error() },
		})
		if err != nil {
			t.Fatal(err)
		}
		h.report(h.poll(t.Context()))
		for what, text := range map[string]string{"log": log.String(), "event": event} {
			if text == "" || len(text) > 10000 || strings.Contains(text, "canary") {
				t.Errorf("%s: %s has %d bytes: %.200s", name, what, len(text), text)
			}
		}
	}
}
