package boundedio

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"swiftlet/internal/clip"
)

// DialOptions limit the texts of the errors that a gRPC server returns: they end up in statuses, events and
// logs. Codes and details stay.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(limitCall), grpc.WithChainStreamInterceptor(limitStream)}
}

func limitCall(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return limitStatus(call(ctx, method, request, response, conn, options...))
}

func limitStream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, options...)
	if err != nil {
		return nil, limitStatus(err)
	}
	return limitedStream{stream}, nil
}

type limitedStream struct{ grpc.ClientStream }

func (s limitedStream) RecvMsg(message any) error {
	return limitStatus(s.ClientStream.RecvMsg(message))
}

func limitStatus(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok || len(s.Message()) <= clip.Message {
		return err
	}
	limited := s.Proto()
	limited.Message = clip.Text(limited.Message, clip.Message)
	return status.ErrorProto(limited)
}
