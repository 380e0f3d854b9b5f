package probe

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// grpcCredentials skips verification: any certificate of a pod is accepted.
func grpcCredentials(action *v1.GRPCAction) credentials.TransportCredentials {
	if action.Mode != nil && *action.Mode == v1.GRPCProbeModeTLS {
		return credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	}
	return insecure.NewCredentials()
}

// checkGRPC calls the standard health service.
func checkGRPC(ctx context.Context, t Target) Outcome {
	service := ""
	if t.Probe.GRPC.Service != nil {
		service = *t.Probe.GRPC.Service
	}
	address := net.JoinHostPort(t.PodIP, strconv.Itoa(int(t.Probe.GRPC.Port)))
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(grpcCredentials(t.Probe.GRPC)), grpc.WithUserAgent(userAgent), grpc.WithNoProxy(),
		grpc.WithMaxHeaderListSize(maxHeaders), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxBody)))
	if err != nil {
		return errored(err)
	}
	defer conn.Close()

	callCtx := metadata.NewOutgoingContext(ctx, metadata.MD{})
	response, err := grpc_health_v1.NewHealthClient(conn).Check(callCtx, &grpc_health_v1.HealthCheckRequest{Service: service}, grpc.WaitForReady(true))
	switch status.Code(err) {
	case codes.OK:
	case codes.Unimplemented:
		return failed(fmt.Sprintf("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", err))
	case codes.DeadlineExceeded:
		return outcome(pod.Failed, why.ProbeNoReply, fmt.Sprintf("timeout: health rpc did not complete within %ds", max(t.Probe.TimeoutSeconds, 1)))
	default:
		return failed(fmt.Sprintf("error: health rpc probe failed: %s", err))
	}
	if got := response.GetStatus(); got != grpc_health_v1.HealthCheckResponse_SERVING {
		return failed(fmt.Sprintf("service unhealthy (responded with %q)", got.String()))
	}
	return passed("service healthy")
}
