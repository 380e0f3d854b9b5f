package pluginreg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"swiftlet/internal/boundedio"
)

const (
	infoTimeout   = 10 * time.Second
	notifyTimeout = 5 * time.Second
	// listenTimeout is how long a new socket may refuse connections.
	listenTimeout = time.Second
	// maxInfo limits each field of a plugin's info. It has more than the longest path of a socket.
	maxInfo = 1024
)

// register reads the plugin's info, registers it with its handler and notifies it of the
// outcome. An error together with a handler means that the plugin was registered, could not be
// notified and was deregistered again. gone is done when the socket is removed, ctx when the
// agent ends.
func (w *socketWorker) register(ctx, gone context.Context) (Plugin, Handler, error) {
	conn, err := w.dial()
	if err != nil {
		return Plugin{}, nil, err
	}
	defer conn.Close()
	client := registration.NewRegistrationClient(conn)
	p, err := getInfo(gone, client, w.path)
	if err != nil {
		return Plugin{}, nil, err
	}
	h := w.registry.deps.Handlers[p.Type]
	if err := w.callHandler(gone, h, p); err != nil {
		// This error says more than a failure to notify the plugin of it.
		_ = notify(gone, client, "RegisterPlugin error -- "+err.Error())
		return Plugin{}, nil, err
	}
	if err := notify(gone, client, ""); err != nil {
		if ctx.Err() == nil {
			h.Deregister(p)
		}
		return p, h, err
	}
	return p, h, nil
}

func (w *socketWorker) dial() (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+w.path, append(boundedio.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return w.connect(ctx) }))...)
	if err != nil {
		return nil, fmt.Errorf("dial plugin: %w", err)
	}
	return conn, nil
}

// connect retries for a moment while the connection is refused: a plugin creates its socket
// before it listens on it.
func (w *socketWorker) connect(ctx context.Context) (net.Conn, error) {
	clock := w.registry.deps.Clock
	for began := clock.Now(); ; {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", w.path)
		if !errors.Is(err, syscall.ECONNREFUSED) || clock.Since(began) > listenTimeout {
			return conn, err
		}
		select {
		case <-clock.After(listenTimeout / 100):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func getInfo(ctx context.Context, client registration.RegistrationClient, path string) (Plugin, error) {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	info, err := client.GetInfo(ctx, &registration.InfoRequest{})
	if err != nil {
		return Plugin{}, fmt.Errorf("get plugin info: %w", err)
	}
	for what, text := range map[string]string{"type": info.GetType(), "name": info.GetName(), "endpoint": info.GetEndpoint(), "versions": strings.Join(info.GetSupportedVersions(), ",")} {
		if len(text) > maxInfo {
			return Plugin{}, fmt.Errorf("get plugin info: the %s has %d bytes, more than %d", what, len(text), maxInfo)
		}
	}
	p := Plugin{Type: info.GetType(), Name: info.GetName(), Endpoint: info.GetEndpoint(), Versions: info.GetSupportedVersions()}
	if p.Endpoint == "" {
		p.Endpoint = path
	}
	return p, nil
}

// callHandler validates and registers the plugin. Its errors are worded as in the reference
// kubelet, since plugins receive them.
func (w *socketWorker) callHandler(ctx context.Context, h Handler, p Plugin) error {
	if h == nil {
		return fmt.Errorf("%w: %s at socket %s", errNoHandler, p.Type, w.path)
	}
	if err := h.Validate(ctx, p); err != nil {
		return fmt.Errorf("plugin validation failed with err: %w", err)
	}
	if err := h.Register(ctx, p); err != nil {
		return fmt.Errorf("plugin registration failed with err: %w", err)
	}
	return nil
}

// notify reports to the plugin that it is registered or, with a reason, that it is not.
func notify(ctx context.Context, client registration.RegistrationClient, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	_, err := client.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{PluginRegistered: reason == "", Error: reason})
	if err != nil {
		return fmt.Errorf("notify plugin of its registration: %w", err)
	}
	return nil
}
