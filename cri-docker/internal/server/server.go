// Package server answers CRI requests. Each is one call of another package; this one only translates.
package server

import (
	"context"
	"fmt"
	"log/slog"
	"path"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/container"
	"swiftlet/cri-docker/internal/engine"
	"swiftlet/cri-docker/internal/events"
	"swiftlet/cri-docker/internal/image"
	"swiftlet/cri-docker/internal/network"
	"swiftlet/cri-docker/internal/sandbox"
	"swiftlet/cri-docker/internal/stats"
	"swiftlet/cri-docker/internal/streaming"
)

// Server has the parts that answer. What is not implemented has the code Unimplemented, and names the call.
type Server struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer

	Build      string // version of this program
	Engine     *engine.Engine
	Network    *network.Network
	Containers *container.Containers
	Sandboxes  *sandbox.Sandboxes
	Images     *image.Images
	Filesystem *image.Filesystem
	Stats      *stats.Stats
	Events     *events.Events
	Commands   *streaming.Commands
	Runtime    *streaming.Runtime
	Streams    *streaming.Server
	Log        *slog.Logger
}

// Register adds the services to a gRPC server that was made with Options.
func (s *Server) Register(g *grpc.Server) {
	runtimeapi.RegisterRuntimeServiceServer(g, s)
	runtimeapi.RegisterImageServiceServer(g, s)
}

// maxMessage is what the kubelet accepts, too.
const maxMessage = 16 << 20

// Options give errors a code, and log them.
func Options(log *slog.Logger) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage + 1<<20),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
			defer recovered(log, info.FullMethod, &err)
			answer, err = handle(ctx, req)
			return answer, logged(log, info.FullMethod, err)
		}),
		grpc.ChainStreamInterceptor(func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
			defer recovered(log, info.FullMethod, &err)
			return logged(log, info.FullMethod, handle(server, stream))
		}),
	}
}

func logged(log *slog.Logger, method string, err error) error {
	err = engine.Status(err)
	if err != nil {
		log.Debug("request failed", "call", path.Base(method), "err", err)
	}
	return err
}

// recovered keeps one bad request from ending the streams of all other pods.
func recovered(log *slog.Logger, method string, err *error) {
	if cause := recover(); cause != nil {
		log.Error("request panicked", "call", path.Base(method), "cause", cause)
		*err = engine.Status(fmt.Errorf("%s: internal error: %v", path.Base(method), cause))
	}
}
