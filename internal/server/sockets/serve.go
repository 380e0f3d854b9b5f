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

// The rate limit of each socket. It keeps a client that polls without pause from taking the
// kubelet's CPU time.
const (
	callsPerSecond = 100
	callBurst      = 10
)

var errRateLimited = status.Error(codes.ResourceExhausted, "rejected by rate limit")

// serve serves one socket until ctx is done.
func (s *Server) serve(ctx context.Context, path string, register func(grpc.ServiceRegistrar)) error {
	listener, err := s.deps.Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("serve %s: %w", path, err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(s.unary()), grpc.StreamInterceptor(s.stream), grpc.WaitForHandlers(true))
	register(server)
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	s.deps.Log.Info("server: listening", "name", "local API", "path", path)
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve %s: %w", path, err)
	}
	return nil
}

// listen opens the socket. It removes a socket that an earlier process left.
func listen(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, errors.New("the existing file is not a socket")
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return (&net.ListenConfig{}).Listen(ctx, "unix", path)
}

// unary limits the rate of unary calls and counts them.
func (s *Server) unary() grpc.UnaryServerInterceptor {
	limit := flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(callsPerSecond, callBurst, s.deps.Clock)
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (response any, err error) {
		if !limit.TryAccept() {
			return nil, errRateLimited
		}
		response, err = handle(ctx, request)
		s.deps.Called(info.FullMethod, err)
		return response, err
	}
}

// stream counts streaming calls.
func (s *Server) stream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	err := handle(service, stream)
	s.deps.Called(info.FullMethod, err)
	return err
}
