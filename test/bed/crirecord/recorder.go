package crirecord

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// Recorder serves a runtime's API on another socket.
type Recorder struct {
	server  *grpc.Server
	runtime *grpc.ClientConn
	done    chan error // result of serving

	mu  sync.Mutex // guards out: lines do not interleave
	out io.Writer
}

// Start listens on socket and forwards calls to the socket runtime, which need not exist yet. It
// writes one JSON line per response to out. The caller closes the Recorder.
func Start(socket, runtime string, out io.Writer) (*Recorder, error) {
	connection, err := grpc.NewClient("unix://"+runtime,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(math.MaxInt32)),
		// Reconnect quickly when the runtime is back, like a directly connected kubelet.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
	if err != nil {
		return nil, fmt.Errorf("connect to runtime: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start recorder: %w", err), connection.Close())
	}
	r := &Recorder{runtime: connection, out: out, done: make(chan error, 1)}
	r.server = grpc.NewServer(grpc.UnknownServiceHandler(r.forward),
		grpc.ForceServerCodecV2(rawCodec{}), grpc.MaxRecvMsgSize(math.MaxInt32))
	go func() { r.done <- r.server.Serve(listener) }()
	return r, nil
}

// Close cancels running calls and closes the socket.
func (r *Recorder) Close() error {
	r.server.Stop()
	return errors.Join(<-r.done, r.runtime.Close())
}
