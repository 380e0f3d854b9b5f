package sockets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/util/flowcontrol"
)

// One socket answers this many calls in a second, and so many at once; more are refused,
// lest a monitor that asks without pause keep the agent from its pods.
const (
	callsPerSecond = 100
	callsAtOnce    = 10
)

var errTooMany = status.Error(codes.ResourceExhausted, "rejected by rate limit")

// serve serves one socket until ctx ends.
func (s *Server) serve(ctx context.Context, path string, register func(grpc.ServiceRegistrar)) error {
	listener, err := listen(ctx, path)
	if err != nil {
		return fmt.Errorf("serve %s: %w", path, err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(s.unary()), grpc.StreamInterceptor(s.stream), grpc.WaitForHandlers(true))
	register(server)
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	s.deps.Log.Info("serving", "what", "local API", "socket", path)
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve %s: %w", path, err)
	}
	return nil
}

// listen opens the socket in place of one that an agent before this one left behind.
func listen(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, errors.New("something that is not a socket is in its place")
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return (&net.ListenConfig{}).Listen(ctx, "unix", path)
}

// unary limits and reports calls of one answer.
func (s *Server) unary() grpc.UnaryServerInterceptor {
	limit := flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(callsPerSecond, callsAtOnce, s.deps.Clock)
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
		if !limit.TryAccept() {
			return nil, errTooMany
		}
		answer, err = handle(ctx, request)
		s.deps.Called(info.FullMethod, err)
		return answer, err
	}
}

// stream reports calls that have many answers.
func (s *Server) stream(of any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	err := handle(of, stream)
	s.deps.Called(info.FullMethod, err)
	return err
}
