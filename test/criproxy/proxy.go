package criproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"path"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Call is one call of the kubelet. In CRI a call has one request; it may have many responses.
type Call struct {
	FullMethod string // such as "/runtime.v1.RuntimeService/Version"
	Request    []byte
	Began      time.Time
}

// Method is the name of the method, such as "Version".
func (c Call) Method() string { return path.Base(c.FullMethod) }

// Hooks are called for each call, from many goroutines. Each may be nil.
type Hooks struct {
	// Before is called before the runtime gets the call. If it returns an error, the runtime does not
	// get it, and the kubelet gets the error.
	Before func(ctx context.Context, c Call) error
	// Answer returns what the kubelet gets in place of a response. An error ends the call.
	Answer func(ctx context.Context, c Call, response []byte) ([][]byte, error)
	// Failed is called when a call ends with an error.
	Failed func(c Call, err error)
}

// Proxy serves a runtime's API on another socket.
type Proxy struct {
	hooks   Hooks
	server  *grpc.Server
	runtime *grpc.ClientConn
	done    chan error // result of serving
}

// Start listens on socket and forwards calls to the socket runtime, which need not exist yet. The caller
// closes the proxy.
func Start(socket, runtime string, hooks Hooks) (*Proxy, error) {
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
		return nil, errors.Join(fmt.Errorf("start proxy: %w", err), connection.Close())
	}
	p := &Proxy{hooks: hooks, runtime: connection, done: make(chan error, 1)}
	p.server = grpc.NewServer(grpc.UnknownServiceHandler(p.handle),
		grpc.ForceServerCodecV2(rawCodec{}), grpc.MaxRecvMsgSize(math.MaxInt32))
	go func() { p.done <- p.server.Serve(listener) }()
	return p, nil
}

// Close cancels running calls and closes the socket.
func (p *Proxy) Close() error {
	p.server.Stop()
	return errors.Join(<-p.done, p.runtime.Close())
}

// handle forwards one call, with the caller's deadline and cancellation.
func (p *Proxy) handle(_ any, caller grpc.ServerStream) error {
	method, ok := grpc.MethodFromServerStream(caller)
	if !ok {
		return status.Error(codes.Internal, "the call has no method")
	}
	c := Call{FullMethod: method, Began: time.Now()}
	if err := caller.RecvMsg(&c.Request); err != nil {
		return err
	}
	err := p.forward(caller, c)
	if err != nil && p.hooks.Failed != nil {
		p.hooks.Failed(c, err)
	}
	return err
}

func (p *Proxy) forward(caller grpc.ServerStream, c Call) error {
	ctx := caller.Context()
	if p.hooks.Before != nil {
		if err := p.hooks.Before(ctx, c); err != nil {
			return err
		}
	}
	if sent, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, sent)
	}
	runtime, err := p.runtime.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, c.FullMethod)
	if err != nil {
		return err
	}
	// If the stream fails here, RecvMsg returns the reason.
	_, _ = runtime.SendMsg(&c.Request), runtime.CloseSend()
	for {
		var response []byte
		if err := runtime.RecvMsg(&response); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := p.answer(caller, c, response); err != nil {
			return err
		}
	}
}

func (p *Proxy) answer(caller grpc.ServerStream, c Call, response []byte) error {
	answers := [][]byte{response}
	if p.hooks.Answer != nil {
		var err error
		if answers, err = p.hooks.Answer(caller.Context(), c, response); err != nil {
			return err
		}
	}
	for i := range answers {
		if err := caller.SendMsg(&answers[i]); err != nil {
			return err
		}
	}
	return nil
}
