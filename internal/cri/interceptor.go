package cri

import (
	"context"
	"path"

	"google.golang.org/grpc"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
)

// timed tells of each call when it is over. A stream has no end that the wire knows of:
// whoever reads one tells of it.
func timed(called meter.CallsOf, clock clock.PassiveClock) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
		began := clock.Now()
		err := call(ctx, method, request, answer, conn, options...)
		called(path.Base(method), clock.Since(began), err)
		return err
	}
}
