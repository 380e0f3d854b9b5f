package cri

import (
	"context"
	"path"

	"google.golang.org/grpc"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
)

// timeCalls is an interceptor that reports the duration and error of each unary call. The
// reader of a stream reports the stream's.
func timeCalls(calls meter.CallsOf, clock clock.PassiveClock) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
		began := clock.Now()
		err := call(ctx, method, request, response, conn, options...)
		calls(path.Base(method), clock.Since(began), err)
		return err
	}
}
