package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	protocol "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/tools/remotecommand"
	spdyclient "k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

const (
	// runtimePing keeps the runtime's connection from being taken for dead.
	runtimePing = 5 * time.Second
	// lastWordTime is how long a client may take to accept how the process ended.
	lastWordTime = 10 * time.Second
)

// translate serves a WebSocket client (v5.channel.k8s.io) from a runtime that speaks SPDY.
func (s *Server) translate(w http.ResponseWriter, r *http.Request, to *url.URL, o streamOptions) {
	conn, channels, err := openChannels(w, r, o)
	if err != nil {
		s.deps.Log.Debug("WebSocket client is gone", "err", err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	// This channel ends only with the connection, which makes it the one to tell of that.
	sizes := make(sizes)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		sizes.read(ctx, channels[protocol.StreamResize])
	}()
	defer func() {
		conn.Close()
		cancel()
		<-ended
	}()
	status := outcome(joinRuntime(ctx, to, channels, o, sizes))
	text, err := json.Marshal(status)
	if err != nil {
		s.deps.Log.Error("encode outcome of stream", "err", err)
		return
	}
	conn.SetWriteDeadline(lastWordTime)
	if _, err := channels[protocol.StreamErr].Write(text); err != nil {
		s.deps.Log.Debug("outcome of stream was not taken", "err", err)
	}
}

// openChannels accepts the client. A first, empty message tells it that all is ready.
func openChannels(w http.ResponseWriter, r *http.Request, o streamOptions) (*wsstream.Conn, []io.ReadWriteCloser, error) {
	types := make([]wsstream.ChannelType, protocol.StreamResize+1)
	first := protocol.StreamErr
	for _, c := range []struct {
		wanted bool
		number int
		kind   wsstream.ChannelType
	}{
		{true, protocol.StreamErr, wsstream.WriteChannel},
		{true, protocol.StreamResize, wsstream.ReadChannel},
		{o.stdin, protocol.StreamStdIn, wsstream.ReadChannel},
		{o.stderr, protocol.StreamStdErr, wsstream.WriteChannel},
		{o.stdout, protocol.StreamStdOut, wsstream.WriteChannel},
	} {
		if !c.wanted {
			continue
		}
		if types[c.number] = c.kind; c.kind == wsstream.WriteChannel {
			first = c.number
		}
	}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		protocol.StreamProtocolV5Name: {Binary: true, Channels: types},
	})
	_, channels, err := conn.Open(w, r)
	if err != nil {
		return nil, nil, err
	}
	if _, err := channels[first].Write(nil); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, channels, nil
}

// joinRuntime connects the channels to the process and returns when it has ended.
func joinRuntime(ctx context.Context, to *url.URL, channels []io.ReadWriteCloser, o streamOptions, sizes sizes) error {
	transport, err := spdy.NewRoundTripperWithConfig(spdy.RoundTripperConfig{TLS: runtimeTLS, PingPeriod: runtimePing})
	if err != nil {
		return err
	}
	process, err := remotecommand.NewSPDYExecutorRejectRedirects(transport, spdyclient.NewUpgraderForStreaming(transport), http.MethodPost, to)
	if err != nil {
		return err
	}
	joined := remotecommand.StreamOptions{Tty: o.tty}
	if o.stdin {
		joined.Stdin = channels[protocol.StreamStdIn]
	}
	if o.stdout {
		joined.Stdout = channels[protocol.StreamStdOut]
	}
	if o.stderr {
		joined.Stderr = channels[protocol.StreamStdErr]
	}
	if o.tty {
		joined.TerminalSizeQueue = sizes
	}
	return process.StreamWithContext(ctx, joined)
}

// outcome is how the process ended, in the form that clients read.
func outcome(err error) metav1.Status {
	var refused apierrors.APIStatus
	var exit exec.CodeExitError
	switch {
	case err == nil:
		return metav1.Status{Status: metav1.StatusSuccess}
	case errors.As(err, &refused):
		return refused.Status()
	case errors.As(err, &exit) && exit.Exited():
		return metav1.Status{
			Status: metav1.StatusFailure,
			Reason: protocol.NonZeroExitCodeReason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: protocol.ExitCodeCauseType, Message: fmt.Sprint(exit.ExitStatus())},
			}},
			Message: fmt.Sprintf("command terminated with non-zero exit code: %v", exit),
		}
	}
	return apierrors.NewInternalError(err).Status()
}

// sizes passes on the changes of the client's terminal.
type sizes chan remotecommand.TerminalSize

// read ends with the stream or with ctx.
func (s sizes) read(ctx context.Context, from io.Reader) {
	defer close(s)
	decoder := json.NewDecoder(from)
	for {
		var size remotecommand.TerminalSize
		if err := decoder.Decode(&size); err != nil {
			return
		}
		select {
		case s <- size:
		case <-ctx.Done():
			return
		}
	}
}

// Next implements remotecommand.TerminalSizeQueue.
func (s sizes) Next() *remotecommand.TerminalSize {
	size, ok := <-s
	if !ok {
		return nil
	}
	return &size
}
