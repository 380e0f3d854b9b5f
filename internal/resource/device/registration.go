package device

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"swiftlet/internal/pluginreg"
)

// socket is the registration socket's name in the folder.
const socket = "kubelet.sock"

// Run serves the registration socket until ctx is done.
func (m *Manager) Run(ctx context.Context) error {
	defer m.end()
	if err := os.MkdirAll(m.cfg.Dir, 0o750); err != nil {
		return fmt.Errorf("make the folder of device plugins: %w", err)
	}
	if err := m.clean(); err != nil {
		return err
	}
	path := filepath.Join(m.cfg.Dir, socket)
	listener, err := listen(path)
	if err != nil {
		return fmt.Errorf("listen for device plugins: %w", err)
	}
	defer os.Remove(path)
	server := grpc.NewServer()
	pluginapi.RegisterRegistrationServer(server, &registrar{manager: m})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case <-ctx.Done():
		server.Stop()
		<-served
		return nil
	case err := <-served:
		return fmt.Errorf("serve the registration of device plugins: %w", err)
	}
}

// listen makes a socket that appears with somebody listening on it: plugins wait for it to
// appear, and not all of them try twice.
func listen(path string) (net.Listener, error) {
	early := path + ".new"
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: early, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err := errors.Join(os.Link(early, path), os.Remove(early)); err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

// clean removes the sockets of an earlier agent's time. That, and the new registration
// socket, is how plugins learn that they are to register again.
func (m *Manager) clean() error {
	entries, err := os.ReadDir(m.cfg.Dir)
	if err != nil {
		return fmt.Errorf("clean the folder of device plugins: %w", err)
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(m.cfg.Dir, e.Name())
		info, err := os.Stat(path) // a link to a socket goes too
		if err != nil || info.Mode()&fs.ModeSocket == 0 {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("clean the folder of device plugins: %w", err))
		}
	}
	return errors.Join(errs...)
}

// registrar serves plugins that register by themselves. Its refusals are worded as plugins
// know them from the reference kubelet.
type registrar struct {
	pluginapi.UnimplementedRegistrationServer
	manager *Manager
}

func (r *registrar) Register(ctx context.Context, q *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	m := r.manager
	m.deps.Meters.Registered.Inc(q.GetResourceName())
	if !supported(q.GetVersion()) {
		return nil, m.refuse(q, fmt.Errorf("requested API version %q is not supported by kubelet. Supported version is %q", q.GetVersion(), pluginapi.SupportedVersions))
	}
	if !isExtended(q.GetResourceName()) {
		return nil, m.refuse(q, invalidName(q.GetResourceName()))
	}
	if err := m.connect(ctx, q.GetResourceName(), filepath.Join(m.cfg.Dir, q.GetEndpoint())); err != nil {
		return nil, m.refuse(q, err)
	}
	return &pluginapi.Empty{}, nil
}

func (m *Manager) refuse(q *pluginapi.RegisterRequest, err error) error {
	m.deps.Log.Warn("device plugin not registered", "resource", q.GetResourceName(), "endpoint", q.GetEndpoint(), "err", err)
	return err
}

func supported(versions ...string) bool {
	return slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(pluginapi.SupportedVersions[:], v) })
}

func invalidName(resource string) error {
	return fmt.Errorf("the ResourceName %q is invalid", resource)
}

// isExtended: the name is one that others than Kubernetes may give to a resource, also with
// the prefix that quotas put before it.
func isExtended(resource string) bool {
	return strings.Contains(resource, "/") && !strings.Contains(resource, v1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(resource, v1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+resource)) == 0
}

// Validate and the following make the manager the handler of device plugins that register
// through the folder that all kinds of plugins share.
func (m *Manager) Validate(_ context.Context, p pluginreg.Plugin) error {
	if !supported(p.Versions...) {
		return fmt.Errorf("manager version, %s, is not among plugin supported versions %v", pluginapi.Version, p.Versions)
	}
	if !isExtended(p.Name) {
		return fmt.Errorf("invalid name of device plugin socket: %w", invalidName(p.Name))
	}
	return nil
}

// Register connects the plugin.
func (m *Manager) Register(ctx context.Context, p pluginreg.Plugin) error {
	return m.connect(ctx, p.Name, p.Endpoint)
}

// Deregister gives it up.
func (m *Manager) Deregister(p pluginreg.Plugin) { m.disconnect(p.Name, p.Endpoint) }
