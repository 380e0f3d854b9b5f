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
)

// reconnect is the longest time between two tries to reach a driver that has gone without
// taking its socket along.
const reconnect = 10 * time.Second

// Run attends to the drivers until ctx is done: it hears about the health of their devices,
// and withdraws what those offer that are not there.
func (m *Manager) Run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	defer m.disconnect()
	work.Go(func() { m.offers(ctx) })
	work.Go(func() { m.age(ctx) })
	for ctx.Err() == nil {
		for _, d := range m.newcomers() {
			work.Go(func() { m.attend(ctx, d) })
		}
		m.await(ctx, m.arrived, 0)
	}
	return nil
}

func (m *Manager) newcomers() []*driver {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.arrivals
	m.arrivals = nil
	return all
}

// attend follows one driver until it is given up.
func (m *Manager) attend(ctx context.Context, d *driver) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	work.Go(func() { m.follow(ctx, d) })
	if d.health != nil {
		work.Go(func() { m.listen(ctx, d) })
	}
	m.await(ctx, d.left, 0)
}

// connect makes the connection, which is not to rest: that is how we learn of a driver's end.
func (d *driver) connect() (*grpc.ClientConn, error) {
	pace := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: reconnect}
	pace.Backoff.MaxDelay = reconnect
	return grpc.NewClient("unix:"+d.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(d.measure), grpc.WithIdleTimeout(0), grpc.WithConnectParams(pace))
}

// follow notes whether the driver can be reached.
func (m *Manager) follow(ctx context.Context, d *driver) {
	for {
		state := d.conn.GetState()
		switch state {
		case connectivity.Shutdown:
			return
		case connectivity.Idle:
			d.conn.Connect()
		}
		m.reached(d, state == connectivity.Ready)
		if !d.conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// reached notes a change. Pods that wait for the driver are tried again when it is back.
func (m *Manager) reached(d *driver, yes bool) {
	m.mu.Lock()
	if d.connected == yes {
		m.mu.Unlock()
		return
	}
	d.connected = yes
	m.judge(d.name)
	waiting := maps.Clone(m.waiting)
	m.mu.Unlock()
	if yes {
		m.wake(waiting)
	}
}

// judge notes since when no driver of the name can be reached. Called under the lock.
func (m *Manager) judge(name string) {
	if m.usable(name) {
		delete(m.left, name)
	} else if _, noted := m.left[name]; !noted {
		m.left[name] = m.deps.Clock.Now()
		m.poke.Notify()
	}
}

// usable: a driver of the name can be reached. Called under the lock.
func (m *Manager) usable(name string) bool {
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
