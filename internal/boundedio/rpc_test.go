package boundedio

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"swiftlet/internal/clip"
)

// verbose is a server whose errors have a megabyte.
type verbose struct {
	grpc_health_v1.UnimplementedHealthServer
}

var errVerbose = status.Error(codes.NotFound, "no such volume: "+strings.Repeat("x", 1<<20))

func (verbose) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return nil, errVerbose
}

func (verbose) Watch(*grpc_health_v1.HealthCheckRequest, grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	return errVerbose
}

func TestErrorsOfServersAreLimited(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, verbose{})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := grpc.NewClient(listener.Addr().String(), append(DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := grpc_health_v1.NewHealthClient(conn)
	_, unary := client.Check(t.Context(), nil)
	stream, err := client.Watch(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, streamed := stream.Recv()
	for name, err := range map[string]error{"call": unary, "stream": streamed} {
		if len(status.Convert(err).Message()) > clip.Message || status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "desc = no such volume: xxx") {
			t.Errorf("%s: %d bytes, %.100v", name, len(err.Error()), err)
		}
	}
}
