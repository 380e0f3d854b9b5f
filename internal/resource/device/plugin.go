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

	"swiftlet/internal/boundedio"
)

const (
	// connectTimeout limits the first call to a plugin.
	connectTimeout = 10 * time.Second
	// redialDelay is the initial back-off for a socket without a listener.
	redialDelay = 50 * time.Millisecond
)

// plugin is a connected device plugin.
type plugin struct {
	resource, socket string

	conn    *grpc.ClientConn
	client  pluginapi.DevicePluginClient
	options *pluginapi.DevicePluginOptions
	// devices are its last list, nil before the first. The manager's lock guards it.
	devices map[string]*pluginapi.Device
	// stop ends the watch of its list.
	stop context.CancelFunc
}

// connect connects a plugin and makes it active, in place of one on the same socket. The plugin
// stays connected until its ListAndWatch stream ends.
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
	watchCtx, stop := context.WithCancel(context.Background())
	p.stop = stop
	if !m.addPlugin(p) {
		stop()
		conn.Close()
		return fmt.Errorf("connect device plugin of %s: the agent is shutting down", resource)
	}
	m.watchers.Go(func() {
		err := m.watchDevices(watchCtx, p)
		stop()
		conn.Close()
		m.pluginLost(p, err)
	})
	m.deps.Log.Info("device plugin connected", "resource", resource, "socket", socket)
	return nil
}

func dial(socket string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+socket, append(boundedio.DialOptions(),
		grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: redialDelay, Multiplier: 1.6, MaxDelay: time.Second}}),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))...)
	if err != nil {
		return nil, fmt.Errorf("failed to dial device plugin: %w", err)
	}
	return conn, nil
}

// addPlugin adds the plugin and makes it active. It returns false during shutdown.
func (m *Manager) addPlugin(p *plugin) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return false
	}
	s := m.resources[p.resource]
	if s == nil {
		s = &resourceState{}
		m.resources[p.resource] = s
	}
	s.plugins = slices.DeleteFunc(s.plugins, func(old *plugin) bool {
		if old.socket == p.socket {
			old.stop()
		}
		return old.socket == p.socket
	})
	s.plugins = append(s.plugins, p)
	s.options, s.lostAt = p.options, time.Time{}
	delete(m.removed, p.resource)
	return true
}

// watchDevices receives the plugin's device lists until the stream ends.
func (m *Manager) watchDevices(ctx context.Context, p *plugin) error {
	list, err := p.client.ListAndWatch(ctx, &pluginapi.Empty{})
	if err != nil {
		return err
	}
	for {
		reported, err := list.Recv()
		if err != nil {
			return err
		}
		m.setDevices(p, reported.GetDevices())
	}
}

// pluginLost removes a plugin. Another connected one becomes active.
func (m *Manager) pluginLost(p *plugin, cause error) {
	m.mu.Lock()
	s := m.resources[p.resource]
	if m.stopped || s == nil || !slices.Contains(s.plugins, p) { // replaced by another on the same socket
		m.mu.Unlock()
		return
	}
	wasUsed := s.active() == p
	s.plugins = slices.DeleteFunc(s.plugins, func(k *plugin) bool { return k == p })
	var affected map[types.UID]bool
	if len(s.plugins) == 0 {
		s.lostAt = m.deps.Clock.Now()
	} else if next := s.active(); wasUsed && next != nil {
		affected = m.useDevicesLocked(p.resource, s, next.devices)
	}
	m.mu.Unlock()
	m.deps.Log.Warn("device plugin disconnected", "resource", p.resource, "socket", p.socket, "err", cause)
	m.publishDevices(affected)
}

// disconnect disconnects the plugin on a socket, if any.
func (m *Manager) disconnect(resource, socket string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.resources[resource]
	if s == nil {
		return
	}
	for _, p := range s.plugins {
		if p.socket == socket {
			p.stop() // pluginLost does the rest
		}
	}
}

// stopPlugins disconnects all plugins at shutdown. They remain in the checkpoint.
func (m *Manager) stopPlugins() {
	m.mu.Lock()
	m.stopped = true
	for _, s := range m.resources {
		for _, p := range s.plugins {
			p.stop()
		}
	}
	m.mu.Unlock()
	m.watchers.Wait()
}
