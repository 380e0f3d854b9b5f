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

	"swiftlet/internal/cri"
)

// connect joins the client with a process whose streams the runtime serves at location;
// err says why it does not. Runtimes speak SPDY, and the older WebSocket protocols at
// most, so version 5 of the latter is translated here.
func (s *Server) connect(w http.ResponseWriter, r *http.Request, location string, err error, o streamOptions) {
	if !s.cfg.WebSockets || !wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
		s.upgrade(w, r, location, err)
		return
	}
	s.stream(w, r, location, err, func(w http.ResponseWriter, r *http.Request, to *url.URL) {
		s.translate(w, r, to, o)
	})
}

// upgrade passes the client's own protocol on to the runtime.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request, location string, err error) {
	s.stream(w, r, location, err, func(w http.ResponseWriter, r *http.Request, to *url.URL) {
		proxy.NewUpgradeAwareHandler(to, nil, false, true, streamTrouble{s}).ServeHTTP(w, r)
	})
}

// stream serves a connection that both sides may use for long. It ends with the server.
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
		s.deps.Meters.WebSocket.Inc(strings.ToLower(rootOf(r.URL.Path)))
	}
	s.streams.Add(1)
	defer s.streams.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	kept := &keptWriter{ResponseWriter: w, ctx: ctx, clock: s.deps.Clock, idle: s.cfg.Kubelet.StreamingConnectionIdleTimeout.Duration}
	serve(kept, r.WithContext(ctx), to)
}

// retrySeconds is when a runtime that holds too many prepared streams has dropped some.
const retrySeconds = "60"

// failStream answers with the runtime's reason for not serving a stream.
func failStream(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	switch status.Code(err) {
	case codes.NotFound:
		code = http.StatusNotFound
	case codes.ResourceExhausted:
		code = http.StatusTooManyRequests
		w.Header().Set("Retry-After", retrySeconds)
	}
	fail(w, code, cri.Text(err))
}

// streamTrouble answers when the runtime cannot be reached, or no upgrade was asked for.
type streamTrouble struct{ *Server }

func (t streamTrouble) Error(w http.ResponseWriter, r *http.Request, err error) {
	t.deps.Log.Info("stream not served", "path", r.URL.Path, "err", err)
	http.Error(w, err.Error(), http.StatusInternalServerError)
}
