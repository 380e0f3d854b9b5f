package device

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	// connectTimeout bounds the first contact with a plugin.
	connectTimeout = 10 * time.Second
	// redial is how soon a socket is tried again on which nobody listens yet.
	redial = 50 * time.Millisecond
)

// plugin is one that is connected.
type plugin struct {
	resource, socket string

	conn    *grpc.ClientConn
	client  pluginapi.DevicePluginClient
	options *pluginapi.DevicePluginOptions
	// devices are as it last told, nil before; guarded by the manager's lock.
	devices map[string]*pluginapi.Device
	// dismiss ends the following of its list.
	dismiss context.CancelFunc
}

// connect takes a plugin into use, in place of one that was on the same socket. The plugin
// is used until its list of devices ends.
func (m *Manager) connect(ctx context.Context, resource, socket string) error {
	conn, err := dial(socket)
	if err != nil {
		return err
	}
	p := &plugin{resource: resource, socket: socket, conn: conn, client: pluginapi.NewDevicePluginClient(conn)}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if p.options, err = p.client.GetDevicePluginOptions(ctx, &pluginapi.Empty{}, grpc.WaitForReady(true)); err != nil {
		conn.Close()
		return fmt.Errorf("failed to get device plugin options: %w", err)
	}
	following, dismiss := context.WithCancel(context.Background())
	p.dismiss = dismiss
	if !m.add(p) {
		dismiss()
		conn.Close()
		return fmt.Errorf("connect device plugin of %s: the agent is ending", resource)
	}
	m.following.Go(func() {
		err := m.follow(following, p)
		dismiss()
		conn.Close()
		m.lost(p, err)
	})
	m.deps.Log.Info("device plugin connected", "resource", resource, "socket", socket)
	return nil
}

func dial(socket string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+socket,
		grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: redial, Multiplier: 1.6, MaxDelay: time.Second}}),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		return nil, fmt.Errorf("failed to dial device plugin: %w", err)
	}
	return conn, nil
}

// add makes the plugin the one in use. It is false when the agent is about to end.
func (m *Manager) add(p *plugin) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return false
	}
	s := m.resources[p.resource]
	if s == nil {
		s = &stock{}
		m.resources[p.resource] = s
	}
	s.plugins = slices.DeleteFunc(s.plugins, func(old *plugin) bool {
		if old.socket == p.socket {
			old.dismiss()
		}
		return old.socket == p.socket
	})
	s.plugins = append(s.plugins, p)
	s.options, s.left = p.options, time.Time{}
	delete(m.removed, p.resource)
	return true
}

// follow takes in what the plugin tells of its devices, until it ends.
func (m *Manager) follow(ctx context.Context, p *plugin) error {
	list, err := p.client.ListAndWatch(ctx, &pluginapi.Empty{})
	if err != nil {
		return err
	}
	for {
		told, err := list.Recv()
		if err != nil {
			return err
		}
		m.listed(p, told.GetDevices())
	}
}

// lost gives up a plugin. Another that is connected takes its place.
func (m *Manager) lost(p *plugin, why error) {
	m.mu.Lock()
	s := m.resources[p.resource]
	if m.ended || s == nil || !slices.Contains(s.plugins, p) { // it was replaced
		m.mu.Unlock()
		return
	}
	wasUsed := s.inUse() == p
	s.plugins = slices.DeleteFunc(s.plugins, func(one *plugin) bool { return one == p })
	var wake map[types.UID]bool
	if len(s.plugins) == 0 {
		s.left = m.deps.Clock.Now()
	} else if next := s.inUse(); wasUsed && next != nil {
		wake = m.use(p.resource, s, next.devices)
	}
	m.mu.Unlock()
	m.deps.Log.Warn("device plugin disconnected", "resource", p.resource, "socket", p.socket, "err", why)
	m.announce(wake)
}

// disconnect gives up the plugin on a socket, if there is one.
func (m *Manager) disconnect(resource, socket string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.resources[resource]
	if s == nil {
		return
	}
	for _, p := range s.plugins {
		if p.socket == socket {
			p.dismiss() // its follower sees to the rest
		}
	}
}

// end gives up all plugins without noting their loss: they live on.
func (m *Manager) end() {
	m.mu.Lock()
	m.ended = true
	for _, s := range m.resources {
		for _, p := range s.plugins {
			p.dismiss()
		}
	}
	m.mu.Unlock()
	m.following.Wait()
}
