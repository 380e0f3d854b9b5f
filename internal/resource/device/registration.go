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

// socketName is the registration socket's file name.
const socketName = "kubelet.sock"

// Run serves the registration socket until ctx is done.
func (m *Manager) Run(ctx context.Context) error {
	defer m.stopPlugins()
	if err := os.MkdirAll(m.cfg.Dir, 0o750); err != nil {
		return fmt.Errorf("create device plugin directory: %w", err)
	}
	if err := m.removeSockets(); err != nil {
		return err
	}
	path := filepath.Join(m.cfg.Dir, socketName)
	listener, err := m.deps.Listen(ctx, "unix", path)
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
		return fmt.Errorf("serve device plugin registration: %w", err)
	}
}

// listen creates a socket that accepts connections as soon as it exists: plugins wait for the
// file, and not all of them retry.
func listen(path string) (net.Listener, error) {
	temporary := path + ".new"
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err := errors.Join(os.Link(temporary, path), os.Remove(temporary)); err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

// removeSockets removes the sockets of an earlier run of the agent. Plugins register again when
// their socket disappears or the registration socket is created.
func (m *Manager) removeSockets() error {
	entries, err := os.ReadDir(m.cfg.Dir)
	if err != nil {
		return fmt.Errorf("clean device plugin directory: %w", err)
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(m.cfg.Dir, e.Name())
		info, err := os.Stat(path) // also removes links to sockets
		if err != nil || info.Mode()&fs.ModeSocket == 0 {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("clean device plugin directory: %w", err))
		}
	}
	return errors.Join(errs...)
}

// registrar serves plugins that register on the socket. The error texts are the reference
// kubelet's.
type registrar struct {
	pluginapi.UnimplementedRegistrationServer
	manager *Manager
}

func (r *registrar) Register(ctx context.Context, request *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	m := r.manager
	m.deps.Meters.Registered.Inc(request.GetResourceName())
	if !supported(request.GetVersion()) {
		return nil, m.logRejection(request, fmt.Errorf("requested API version %q is not supported by kubelet. Supported version is %q", request.GetVersion(), pluginapi.SupportedVersions))
	}
	if !isExtended(request.GetResourceName()) {
		return nil, m.logRejection(request, invalidName(request.GetResourceName()))
	}
	if err := m.connect(ctx, request.GetResourceName(), filepath.Join(m.cfg.Dir, request.GetEndpoint())); err != nil {
		return nil, m.logRejection(request, err)
	}
	return &pluginapi.Empty{}, nil
}

func (m *Manager) logRejection(request *pluginapi.RegisterRequest, err error) error {
	m.deps.Log.Warn("device plugin registration rejected", "resource", request.GetResourceName(), "endpoint", request.GetEndpoint(), "err", err)
	return err
}

func supported(versions ...string) bool {
	return slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(pluginapi.SupportedVersions[:], v) })
}

func invalidName(resource string) error {
	return fmt.Errorf("the ResourceName %q is invalid", resource)
}

// isExtended reports whether the name is that of an extended resource, and stays valid with the
// prefix of resource quotas.
func isExtended(resource string) bool {
	return strings.Contains(resource, "/") && !strings.Contains(resource, v1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(resource, v1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+resource)) == 0
}

// Validate, Register and Deregister implement pluginreg's handler, for device plugins in the
// plugin registration directory.
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

// Deregister disconnects the plugin.
func (m *Manager) Deregister(p pluginreg.Plugin) { m.disconnect(p.Name, p.Endpoint) }
