package crirecord

import (
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// forward forwards one call, with the caller's deadline and cancellation. In CRI a call has one
// request; it may have many responses.
func (r *Recorder) forward(_ any, caller grpc.ServerStream) error {
	method, ok := grpc.MethodFromServerStream(caller)
	if !ok {
		return status.Error(codes.Internal, "the call has no method")
	}
	began := time.Now()
	var request []byte
	if err := caller.RecvMsg(&request); err != nil {
		return err
	}
	ctx := caller.Context()
	if sent, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, sent)
	}
	runtime, err := r.runtime.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err == nil {
		// If the stream fails here, RecvMsg returns the reason.
		_, _ = runtime.SendMsg(&request), runtime.CloseSend()
	}
	for err == nil {
		var answer []byte
		if err = runtime.RecvMsg(&answer); err == nil {
			r.write(line{Time: began, Method: method, request: request, answer: answer})
			err = caller.SendMsg(&answer)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	r.write(line{Time: began, Method: method, request: request, Error: err.Error()})
	return err
}
