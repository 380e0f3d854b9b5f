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
	// runtimePing keeps the connection to the runtime alive.
	runtimePing = 5 * time.Second
	// statusWriteTimeout is how long a client may take to accept the final status.
	statusWriteTimeout = 10 * time.Second
)

// translate connects a WebSocket client (v5.channel.k8s.io) to a runtime that supports SPDY.
func (s *Server) translate(w http.ResponseWriter, r *http.Request, to *url.URL, o streamOptions) {
	conn, channels, err := openChannels(w, r, o)
	if err != nil {
		s.deps.Log.Debug("open WebSocket channels: failed", "err", err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	// The resize channel ends only with the connection, so its end cancels the stream.
	sizes := make(resizeQueue)
	disconnected := make(chan struct{})
	go func() {
		defer close(disconnected)
		defer cancel()
		if o.tty {
			sizes.read(ctx, channels[protocol.StreamResize])
		} else { // the runtime takes no sizes
			_, _ = io.Copy(io.Discard, channels[protocol.StreamResize])
		}
	}()
	defer func() {
		conn.Close()
		cancel()
		<-disconnected
	}()
	status := exitStatus(streamToRuntime(ctx, to, channels, o, sizes))
	text, err := json.Marshal(status)
	if err != nil {
		s.deps.Log.Error("encode stream status: failed", "err", err)
		return
	}
	conn.SetWriteDeadline(statusWriteTimeout)
	if _, err := channels[protocol.StreamErr].Write(text); err != nil {
		s.deps.Log.Debug("write stream status: failed", "err", err)
	}
}

// openChannels upgrades the client's connection. An empty message on stdout, or else on
// stderr or the error channel, signals that the channels are open.
func openChannels(w http.ResponseWriter, r *http.Request, o streamOptions) (*wsstream.Conn, []io.ReadWriteCloser, error) {
	types := make([]wsstream.ChannelType, protocol.StreamResize+1)
	readyChannel := protocol.StreamErr
	for _, c := range []struct {
		open   bool
		number int
		kind   wsstream.ChannelType
	}{
		{true, protocol.StreamErr, wsstream.WriteChannel},
		{true, protocol.StreamResize, wsstream.ReadChannel},
		{o.stdin, protocol.StreamStdIn, wsstream.ReadChannel},
		{o.stderr, protocol.StreamStdErr, wsstream.WriteChannel},
		{o.stdout, protocol.StreamStdOut, wsstream.WriteChannel},
	} {
		if !c.open {
			continue
		}
		if types[c.number] = c.kind; c.kind == wsstream.WriteChannel {
			readyChannel = c.number
		}
	}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		protocol.StreamProtocolV5Name: {Binary: true, Channels: types},
	})
	_, channels, err := conn.Open(w, r)
	if err != nil {
		return nil, nil, err
	}
	if _, err := channels[readyChannel].Write(nil); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, channels, nil
}

// streamToRuntime connects the channels to the process and returns when it has exited.
func streamToRuntime(ctx context.Context, to *url.URL, channels []io.ReadWriteCloser, o streamOptions, sizes resizeQueue) error {
	transport, err := spdy.NewRoundTripperWithConfig(spdy.RoundTripperConfig{UpgradeTransport: runtimeTransport, PingPeriod: runtimePing})
	if err != nil {
		return err
	}
	process, err := remotecommand.NewSPDYExecutorRejectRedirects(transport, spdyclient.NewUpgraderForStreaming(transport), http.MethodPost, to)
	if err != nil {
		return err
	}
	options := remotecommand.StreamOptions{Tty: o.tty}
	if o.stdin {
		options.Stdin = channels[protocol.StreamStdIn]
	}
	if o.stdout {
		options.Stdout = channels[protocol.StreamStdOut]
	}
	if o.stderr {
		options.Stderr = channels[protocol.StreamStdErr]
	}
	if o.tty {
		options.TerminalSizeQueue = sizes
	}
	return process.StreamWithContext(ctx, options)
}

// exitStatus converts the result of a process to the status that clients expect.
func exitStatus(err error) metav1.Status {
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

// maxResizeMessage limits a message with a terminal size.
const maxResizeMessage = 4096

// resizeQueue passes terminal sizes from the client to the runtime.
type resizeQueue chan remotecommand.TerminalSize

// read decodes sizes until the stream ends or ctx is done.
func (q resizeQueue) read(ctx context.Context, reader io.Reader) {
	defer close(q)
	limited := &io.LimitedReader{R: reader}
	decoder := json.NewDecoder(limited)
	for {
		var size remotecommand.TerminalSize
		limited.N = maxResizeMessage
		if err := decoder.Decode(&size); err != nil {
			return
		}
		select {
		case q <- size:
		case <-ctx.Done():
			return
		}
	}
}

// Next implements remotecommand.TerminalSizeQueue.
func (q resizeQueue) Next() *remotecommand.TerminalSize {
	size, ok := <-q
	if !ok {
		return nil
	}
	return &size
}
