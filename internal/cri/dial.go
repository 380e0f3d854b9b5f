package cri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/meter"
)

const (
	// maxMessage bounds a message: it must fit a list of all containers of a full node.
	maxMessage = 16 << 20
	// maxBackoff, plus gRPC's jitter of a fifth, is below one second.
	maxBackoff = 800 * time.Millisecond
	// execMargin is the time for the runtime to kill a command that exceeded its timeout.
	execMargin = 10 * time.Second
	// respondTimeout is how long a runtime that did not answer ExecSync has to answer a further call.
	respondTimeout = time.Second
)

// Config is the runtime's endpoints and the client's options.
type Config struct {
	// RuntimeEndpoint is a unix socket: unix:///path or an absolute path.
	RuntimeEndpoint string
	// ImageEndpoint is the image service's socket; empty means RuntimeEndpoint.
	ImageEndpoint string
	// RequestTimeout bounds an ordinary call (runtimeRequestTimeout).
	RequestTimeout time.Duration
	// Dial, if set, opens the connections instead of the sockets.
	Dial func(context.Context) (net.Conn, error)
	// Calls, if set, is called after every call with its CRI name, such as RunPodSandbox.
	Calls meter.CallsOf
	// Subscriptions, if set, counts the event subscriptions that the runtime accepted.
	Subscriptions meter.Count
	// StatsHandler, if set, is the gRPC stats handler of the connections.
	StatsHandler stats.Handler
	// Clock times the calls; nil means the system clock.
	Clock clock.PassiveClock
}

// Client calls one container runtime.
type Client struct {
	endpoint string // of the runtime service
	runtime  runtimeapi.RuntimeServiceClient
	images   runtimeapi.ImageServiceClient
	timeout  time.Duration
	margin   time.Duration // execMargin
	conns    []*grpc.ClientConn

	calls         meter.CallsOf
	subscriptions meter.Count
	clock         clock.PassiveClock
	// execOptions are those of ExecSync; see BriefExec.
	execOptions []grpc.CallOption
}

// Dial creates a client. It does not connect, so that the kubelet may start before the runtime:
// the first call fails if the runtime is not up.
func Dial(cfg Config) (*Client, error) {
	if cfg.RequestTimeout <= 0 {
		return nil, errors.New("dial runtime: request timeout must be positive")
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	conn, err := connect(cfg.RuntimeEndpoint, cfg)
	if err != nil {
		return nil, fmt.Errorf("dial runtime: %w", err)
	}
	c := &Client{
		endpoint: cfg.RuntimeEndpoint,
		runtime:  runtimeapi.NewRuntimeServiceClient(conn),
		images:   runtimeapi.NewImageServiceClient(conn),
		timeout:  cfg.RequestTimeout,
		margin:   execMargin,
		conns:    []*grpc.ClientConn{conn},

		calls: cfg.Calls, subscriptions: cfg.Subscriptions, clock: cfg.Clock,
	}
	if cfg.ImageEndpoint == "" || cfg.ImageEndpoint == cfg.RuntimeEndpoint {
		return c, nil
	}
	conn, err = connect(cfg.ImageEndpoint, cfg)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("dial image service: %w", err), c.Close())
	}
	c.images = runtimeapi.NewImageServiceClient(conn)
	c.conns = append(c.conns, conn)
	return c, nil
}

// Close closes the connections; calls in progress fail.
func (c *Client) Close() error {
	var errs []error
	for _, conn := range c.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

func connect(endpoint string, cfg Config) (*grpc.ClientConn, error) {
	target, err := target(endpoint)
	if err != nil {
		return nil, err
	}
	buffers, err := smallBuffers()
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{
		buffers,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff},
			MinConnectTimeout: 5 * time.Second,
		}),
		// Without the idle state, the first call after a quiet time need not reconnect.
		grpc.WithIdleTimeout(0),
	}
	options = append(options, boundedio.DialOptions()...)
	if cfg.Calls != nil {
		options = append(options, grpc.WithChainUnaryInterceptor(timeCalls(cfg.Calls, cfg.Clock)))
	}
	if cfg.StatsHandler != nil {
		options = append(options, grpc.WithStatsHandler(cfg.StatsHandler))
	}
	if cfg.Dial != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return cfg.Dial(ctx) }))
	}
	return grpc.NewClient(target, options...)
}

// target converts an endpoint to a gRPC target.
func target(endpoint string) (string, error) {
	path, hasScheme := strings.CutPrefix(endpoint, "unix://")
	if !hasScheme && strings.Contains(endpoint, "://") {
		return "", fmt.Errorf("endpoint %q: only unix sockets are supported", endpoint)
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("endpoint %q: must be unix:// and an absolute path", endpoint)
	}
	return "unix://" + path, nil
}
