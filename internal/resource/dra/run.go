package dra

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"swiftlet/internal/boundedio"
)

// reconnectInterval is the longest time between two attempts to reach a driver whose socket
// still exists.
const reconnectInterval = 10 * time.Second

// Run supervises the drivers until ctx is done: it watches their connections and the health of
// their devices, and deletes the ResourceSlices of absent drivers.
func (m *Manager) Run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	defer m.disconnect()
	work.Go(func() { m.cleanSlices(ctx) })
	work.Go(func() { m.expireHealth(ctx) })
	for ctx.Err() == nil {
		for _, d := range m.takeNewDrivers() {
			work.Go(func() { m.supervise(ctx, d) })
		}
		m.await(ctx, m.driverAdded, 0)
	}
	return nil
}

func (m *Manager) takeNewDrivers() []*driver {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.newDrivers
	m.newDrivers = nil
	return all
}

// supervise watches one driver until it is deregistered.
func (m *Manager) supervise(ctx context.Context, d *driver) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	work.Go(func() { m.watchConnection(ctx, d) })
	if d.health != nil {
		work.Go(func() { m.watchHealth(ctx, d) })
	}
	m.await(ctx, d.deregistered, 0)
}

// connect creates the connection. It never becomes idle, so that its state shows the driver's
// exit.
func (d *driver) connect() (*grpc.ClientConn, error) {
	params := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: reconnectInterval}
	params.Backoff.MaxDelay = reconnectInterval
	return grpc.NewClient("unix:"+d.endpoint, append(boundedio.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(d.measure), grpc.WithIdleTimeout(0), grpc.WithConnectParams(params))...)
}

// watchConnection records whether the driver is connected.
func (m *Manager) watchConnection(ctx context.Context, d *driver) {
	for {
		state := d.conn.GetState()
		switch state {
		case connectivity.Shutdown:
			return
		case connectivity.Idle:
			d.conn.Connect()
		}
		m.setConnected(d, state == connectivity.Ready)
		if !d.conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// setConnected records a change, and wakes waiting pods when the driver is connected again.
func (m *Manager) setConnected(d *driver, connected bool) {
	m.mu.Lock()
	if d.connected == connected {
		m.mu.Unlock()
		return
	}
	d.connected = connected
	m.updateAbsenceLocked(d.name)
	waiting := maps.Clone(m.waiting)
	m.mu.Unlock()
	if connected {
		m.wake(waiting)
	}
}

// updateAbsenceLocked records since when no driver of the name is connected.
func (m *Manager) updateAbsenceLocked(name string) {
	if m.connectedLocked(name) {
		delete(m.absentSince, name)
	} else if _, recorded := m.absentSince[name]; !recorded {
		m.absentSince[name] = m.deps.Clock.Now()
		m.driverLost.Notify()
	}
}

// connectedLocked reports whether a driver of the name is connected.
func (m *Manager) connectedLocked(name string) bool {
	return slices.ContainsFunc(m.drivers[name], func(d *driver) bool { return d.connected })
}

// disconnect closes the connections to all drivers.
func (m *Manager) disconnect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, all := range m.drivers {
		for _, d := range all {
			d.conn.Close()
		}
	}
}
