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

// services are the supported versions of the DRA plugin API.
var services = []string{drav1.DRAPluginService, drav1beta1.DRAPluginService}

// driver is a registered DRA driver.
type driver struct {
	name, endpoint string
	conn           *grpc.ClientConn
	client         drav1.DRAPluginClient
	health         healthv1.DRAResourceHealthClient // nil if it has no health service
	observeCall    func(driver, method, code string, took time.Duration)
	clock          clock.PassiveClock

	deregistered chan struct{} // closed by Deregister
	// The manager's lock guards connected, and reportsHealth, which is set from the first
	// health report until the stream ends.
	connected, reportsHealth bool
}

// supportedService returns the driver's first service that is supported.
func supportedService(p pluginreg.Plugin) (string, error) {
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

// Validate rejects a driver without a supported version.
func (m *Manager) Validate(_ context.Context, p pluginreg.Plugin) error {
	if _, err := supportedService(p); err != nil {
		return fmt.Errorf("invalid supported gRPC versions of DRA driver plugin %s at endpoint %s: %w", p.Name, p.Endpoint, err)
	}
	return nil
}

// Register adds a driver. During a rolling update there may be two of one name.
func (m *Manager) Register(_ context.Context, p pluginreg.Plugin) error {
	service, err := supportedService(p)
	if err != nil {
		return err
	}
	d := &driver{name: p.Name, endpoint: p.Endpoint, observeCall: m.deps.Meters.Call, clock: m.deps.Clock, deregistered: make(chan struct{})}
	if d.conn, err = d.connect(); err != nil {
		return fmt.Errorf("create gRPC connection to DRA driver %s plugin at endpoint %s: %w", p.Name, p.Endpoint, err)
	}
	d.client = drav1.NewDRAPluginClient(d.conn)
	if service == drav1beta1.DRAPluginService {
		d.client = drav1beta1.V1Beta1ClientWrapper{DRAPluginClient: drav1beta1.NewDRAPluginClient(d.conn)}
	}
	if m.cfg.Health {
		d.health = d.healthClient(p)
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
	m.newDrivers = append(m.newDrivers, d)
	m.updateAbsenceLocked(p.Name)
	waiting := maps.Clone(m.waiting)
	m.mu.Unlock()
	m.driverAdded.Notify()
	m.wake(waiting)
	return nil
}

// Deregister removes a driver. Its ResourceSlices are deleted unless it registers again within
// absenceGrace.
func (m *Manager) Deregister(p pluginreg.Plugin) {
	m.mu.Lock()
	var removed *driver
	m.drivers[p.Name] = slices.DeleteFunc(m.drivers[p.Name], func(d *driver) bool {
		if d.endpoint == p.Endpoint {
			removed = d
		}
		return d.endpoint == p.Endpoint
	})
	if len(m.drivers[p.Name]) == 0 {
		delete(m.drivers, p.Name)
	}
	m.updateAbsenceLocked(p.Name)
	m.mu.Unlock()
	if removed != nil {
		close(removed.deregistered)
		removed.conn.Close()
		m.dropHealth(removed)
	}
}

// find returns the last registered driver that is connected, or else the last registered one.
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

func (d *driver) measure(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	began := d.clock.Now()
	err := call(ctx, method, request, response, conn, opts...)
	if d.observeCall != nil {
		d.observeCall(d.name, method, status.Code(err).String(), d.clock.Since(began))
	}
	return err
}
