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

// Recorder serves on one socket what a runtime serves on another.
type Recorder struct {
	server  *grpc.Server
	runtime *grpc.ClientConn
	done    chan error // how serving ended

	mu  sync.Mutex // of out: a line is written as a whole
	out io.Writer
}

// Start listens on the socket of that path and passes calls on to the runtime's, which
// need not be there yet. One JSON line for each answer goes to out. The caller closes it.
func Start(socket, runtime string, out io.Writer) (*Recorder, error) {
	connection, err := grpc.NewClient("unix://"+runtime,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(math.MaxInt32)),
		// A runtime that returns is found soon, as by a kubelet that asks it directly.
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

// Close ends the calls that are under way, and the socket with them.
func (r *Recorder) Close() error {
	r.server.Stop()
	return errors.Join(<-r.done, r.runtime.Close())
}
