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

// forward passes one call on. The caller's deadline and its change of mind go along with
// the context. In CRI the caller says one thing; only answers may be many.
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
		// A stream that ends here tells why in what is received from it.
		_, _ = runtime.SendMsg(&request), runtime.CloseSend()
	}
	for err == nil {
		var answer []byte
		if err = runtime.RecvMsg(&answer); err == nil {
			r.note(line{Time: began, Method: method, request: request, answer: answer})
			err = caller.SendMsg(&answer)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	r.note(line{Time: began, Method: method, request: request, Error: err.Error()})
	return err
}
