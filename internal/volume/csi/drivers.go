package csi

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/apimachinery/pkg/util/version"

	"swiftlet/internal/pluginreg"
	"swiftlet/internal/why"
)

// driver is a registered driver.
type driver struct {
	endpoint string
	version  *version.Version
}

// Validate rejects a driver without a supported version, and one whose name is taken.
func (p *Plugin) Validate(_ context.Context, d pluginreg.Plugin) error {
	if _, err := p.acceptable(d); err != nil {
		return fmt.Errorf("validation failed for CSI Driver %s at endpoint %s: %w", d.Name, d.Endpoint, err)
	}
	return nil
}

// acceptable returns the highest version that both the driver and the plugin support.
func (p *Plugin) acceptable(d pluginreg.Plugin) (*version.Version, error) {
	const failed = "ValidatePlugin for CSI driver %q failed. "
	if len(d.Versions) == 0 {
		return nil, errorf(failed+"Plugin returned an empty list for supported versions", d.Name)
	}
	highest, err := version.HighestSupportedVersion(d.Versions)
	if err != nil {
		return nil, errorf(failed+"None of the versions specified %q are supported. err=%w", d.Name, d.Versions, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.drivers[d.Name]; ok && !known.version.LessThan(highest) {
		return nil, errorf(failed+"Another driver with the same name is already registered with a higher supported version: %q", d.Name, known.version)
	}
	return highest, nil
}

// Register adds the driver, and writes it to the Node and CSINode objects.
func (p *Plugin) Register(ctx context.Context, d pluginreg.Plugin) error {
	highest, err := p.acceptable(d)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info, err := p.nodeInfo(ctx, d.Name, d.Endpoint)
	if err != nil {
		return err
	}
	if p.deps.Client != nil {
		if err := p.install(ctx, d.Name, info); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.drivers[d.Name] = driver{endpoint: d.Endpoint, version: highest}
	p.mu.Unlock()
	p.DriversChanged()
	if p.deps.Registered != nil {
		p.deps.Registered(d.Name)
	}
	return nil
}

func (p *Plugin) nodeInfo(ctx context.Context, name, endpoint string) (*csi.NodeGetInfoResponse, error) {
	c, err := p.dial(name, endpoint)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.node.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
}

// Deregister removes the driver, unless another one was registered with its name.
func (p *Plugin) Deregister(d pluginreg.Plugin) {
	p.mu.Lock()
	known, ok := p.drivers[d.Name]
	if ok && known.endpoint != d.Endpoint {
		p.mu.Unlock()
		return
	}
	delete(p.drivers, d.Name)
	p.mu.Unlock()
	p.DriversChanged()
	if p.deps.Client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if err := p.uninstall(ctx, d.Name); err != nil {
		p.deps.Log.Warn("csi: failed to remove driver from Node and CSINode", "driver", d.Name, "err", err)
	}
}

// connect connects to a registered driver. The caller closes the client.
func (p *Plugin) connect(name string) (*client, error) {
	p.mu.Lock()
	d, ok := p.drivers[name]
	p.mu.Unlock()
	if !ok {
		return nil, why.Because(why.DriverNotRegistered, name, fmt.Errorf("driver name %s not found in the list of registered CSI drivers", name))
	}
	return p.dial(name, d.endpoint)
}
