package server

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"swiftlet/internal/clip"
	"swiftlet/internal/cri"
)

// connect streams between the client and a process that the runtime serves at location. err is
// the runtime's error, if any. Runtimes support SPDY and at most the older WebSocket protocols,
// so connect translates version 5 of the latter.
func (s *Server) connect(w http.ResponseWriter, r *http.Request, location string, err error, o streamOptions) {
	if !s.cfg.WebSockets || !wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
		s.upgrade(w, r, location, err)
		return
	}
	s.stream(w, r, location, err, func(w http.ResponseWriter, r *http.Request, to *url.URL) {
		s.translate(w, r, to, o)
	})
}

// upgrade proxies the client's protocol to the runtime.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request, location string, err error) {
	s.stream(w, r, location, err, func(w http.ResponseWriter, r *http.Request, to *url.URL) {
		proxy.NewUpgradeAwareHandler(to, runtimeTransport, false, true, streamErrors{s}).ServeHTTP(w, r)
	})
}

// stream serves a long-lived connection. It ends when the server stops.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, location string, err error, serve func(http.ResponseWriter, *http.Request, *url.URL)) {
	if err != nil {
		failStream(w, err)
		return
	}
	to, err := url.Parse(location)
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	if wsstream.IsWebSocketRequest(r) {
		s.deps.Meters.WebSocket.Inc(strings.ToLower(pathLabel(r.URL.Path)))
	}
	s.streams.RLock()
	defer s.streams.RUnlock()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	hijacker := &idleTimeoutWriter{ResponseWriter: w, ctx: ctx, clock: s.deps.Clock, timeout: s.cfg.Kubelet.StreamingConnectionIdleTimeout.Duration}
	serve(hijacker, r.WithContext(ctx), to)
}

// awaitStreams returns when all streams have ended. A request that was read before the server stopped may still
// begin one; its context has ended.
func (s *Server) awaitStreams() {
	s.streams.Lock()
	defer s.streams.Unlock()
}

// retryAfterSeconds is when a runtime with too many pending streams has expired some.
const retryAfterSeconds = "60"

// failStream responds with the runtime's error.
func failStream(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	switch status.Code(err) {
	case codes.NotFound:
		code = http.StatusNotFound
	case codes.ResourceExhausted:
		code = http.StatusTooManyRequests
		w.Header().Set("Retry-After", retryAfterSeconds)
	}
	fail(w, code, cri.Text(err))
}

// streamErrors responds if the runtime is unreachable or the client requests no upgrade.
type streamErrors struct{ *Server }

func (t streamErrors) Error(w http.ResponseWriter, r *http.Request, err error) {
	t.deps.Log.Info("serve stream: failed", "path", clip.Text(r.URL.Path, clip.Name), "err", clip.Error(err, clip.Message))
	http.Error(w, err.Error(), http.StatusInternalServerError)
}
