package pluginreg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const (
	infoTimeout   = 10 * time.Second
	notifyTimeout = 5 * time.Second
	// listenPatience is how long nobody may listen on a new socket.
	listenPatience = time.Second
)

// register asks the plugin what it is, hands it to its handler, and tells it the outcome.
// With an error, a handler means that the plugin was in use until it could not be told.
// gone ends with the socket, ctx with the agent.
func (k *keeper) register(ctx, gone context.Context) (Plugin, Handler, error) {
	conn, err := dial(k.path)
	if err != nil {
		return Plugin{}, nil, err
	}
	defer conn.Close()
	client := registration.NewRegistrationClient(conn)
	p, err := getInfo(gone, client, k.path)
	if err != nil {
		return Plugin{}, nil, err
	}
	h := k.registry.deps.Handlers[p.Type]
	if err := k.offer(gone, h, p); err != nil {
		// What hinders the plugin is worth more than that it could not be told.
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

func dial(path string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return connect(ctx, path) }))
	if err != nil {
		return nil, fmt.Errorf("dial plugin: %w", err)
	}
	return conn, nil
}

// connect has patience with a socket that is there a moment before anybody listens on it.
func connect(ctx context.Context, path string) (net.Conn, error) {
	for began := time.Now(); ; {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Since(began) > listenPatience {
			return conn, err
		}
		select {
		case <-time.After(listenPatience / 100):
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
	p := Plugin{Type: info.GetType(), Name: info.GetName(), Endpoint: info.GetEndpoint(), Versions: info.GetSupportedVersions()}
	if p.Endpoint == "" {
		p.Endpoint = path
	}
	return p, nil
}

// offer words refusals as plugins know them from the reference kubelet.
func (k *keeper) offer(ctx context.Context, h Handler, p Plugin) error {
	if h == nil {
		return fmt.Errorf("%w: %s at socket %s", errNoHandler, p.Type, k.path)
	}
	if err := h.Validate(ctx, p); err != nil {
		return fmt.Errorf("plugin validation failed with err: %w", err)
	}
	if err := h.Register(ctx, p); err != nil {
		return fmt.Errorf("plugin registration failed with err: %w", err)
	}
	return nil
}

// notify tells the plugin that it is registered, or with a reason that it is not.
func notify(ctx context.Context, client registration.RegistrationClient, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	_, err := client.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{PluginRegistered: reason == "", Error: reason})
	if err != nil {
		return fmt.Errorf("notify plugin of its registration: %w", err)
	}
	return nil
}
