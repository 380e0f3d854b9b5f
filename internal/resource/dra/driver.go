package dra

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	"k8s.io/utils/clock"

	"swiftlet/internal/pluginreg"
)

// services are the versions of the drivers' API that are spoken here.
var services = []string{drav1.DRAPluginService, drav1beta1.DRAPluginService}

// driver is one that is registered.
type driver struct {
	name, endpoint string
	conn           *grpc.ClientConn
	client         drav1.DRAPluginClient
	health         healthv1.DRAResourceHealthClient // nil if it does not tell
	called         func(driver, method, code string, took time.Duration)
	clock          clock.PassiveClock

	left chan struct{} // closed when it is given up
	// connected and reports, that it tells the health of its devices, are under the
	// manager's lock.
	connected, reports bool
}

// speaks is the first service of the driver's that is spoken here.
func speaks(p pluginreg.Plugin) (string, error) {
	if len(p.Versions) == 0 {
		return "", errors.New("empty list of supported gRPC services (aka supported versions)")
	}
	for _, s := range p.Versions {
		if slices.Contains(services, s) {
			return s, nil
		}
	}
	return "", fmt.Errorf("none of services supported by the plugin (%q) are supported by the kubelet (%q)", p.Versions, services)
}

// Validate refuses a driver whose versions are not spoken here.
func (m *Manager) Validate(_ context.Context, p pluginreg.Plugin) error {
	if _, err := speaks(p); err != nil {
		return fmt.Errorf("invalid supported gRPC versions of DRA driver plugin %s at endpoint %s: %w", p.Name, p.Endpoint, err)
	}
	return nil
}

// Register takes a driver into use. While one is replaced there may be two.
func (m *Manager) Register(_ context.Context, p pluginreg.Plugin) error {
	service, err := speaks(p)
	if err != nil {
		return err
	}
	d := &driver{name: p.Name, endpoint: p.Endpoint, called: m.deps.Meters.Call, clock: m.deps.Clock, left: make(chan struct{})}
	if d.conn, err = d.connect(); err != nil {
		return fmt.Errorf("create gRPC connection to DRA driver %s plugin at endpoint %s: %w", p.Name, p.Endpoint, err)
	}
	d.client = drav1.NewDRAPluginClient(d.conn)
	if service == drav1beta1.DRAPluginService {
		d.client = drav1beta1.V1Beta1ClientWrapper{DRAPluginClient: drav1beta1.NewDRAPluginClient(d.conn)}
	}
	if m.cfg.Health {
		d.health = d.hearing(p)
	}
	m.mu.Lock()
	for _, old := range m.drivers[p.Name] {
		if old.endpoint == p.Endpoint {
			m.mu.Unlock()
			d.conn.Close()
			return fmt.Errorf("endpoint %s already registered for DRA driver plugin %s", p.Endpoint, p.Name)
		}
	}
	m.drivers[p.Name] = append(m.drivers[p.Name], d)
	m.arrivals = append(m.arrivals, d)
	m.judge(p.Name)
	waiting := maps.Clone(m.waiting)
	m.mu.Unlock()
	m.arrived.Notify()
	m.wake(waiting)
	return nil
}

// Deregister gives it up. What it offers is withdrawn if it does not come back soon.
func (m *Manager) Deregister(p pluginreg.Plugin) {
	m.mu.Lock()
	var gone *driver
	m.drivers[p.Name] = slices.DeleteFunc(m.drivers[p.Name], func(d *driver) bool {
		if d.endpoint == p.Endpoint {
			gone = d
		}
		return d.endpoint == p.Endpoint
	})
	if len(m.drivers[p.Name]) == 0 {
		delete(m.drivers, p.Name)
	}
	m.judge(p.Name)
	m.mu.Unlock()
	if gone != nil {
		close(gone.left)
		gone.conn.Close()
		m.silent(gone)
	}
}

// find is the driver to ask: the latest that answers, else the latest.
func (m *Manager) find(name string) (*driver, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.drivers[name]
	for _, d := range slices.Backward(all) {
		if d.connected {
			return d, nil
		}
	}
	if len(all) > 0 {
		return all[len(all)-1], nil
	}
	return nil, fmt.Errorf("DRA driver %s is not registered", name)
}

func (d *driver) measure(ctx context.Context, method string, q, a any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	began := d.clock.Now()
	err := call(ctx, method, q, a, conn, opts...)
	if d.called != nil {
		d.called(d.name, method, status.Code(err).String(), d.clock.Since(began))
	}
	return err
}
