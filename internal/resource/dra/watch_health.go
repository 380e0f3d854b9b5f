package dra

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"

	"swiftlet/internal/backoff"
	"swiftlet/internal/pluginreg"
)

// Back-off of the health watch.
const (
	initialBackoff = time.Second
	maxBackoff     = 30 * time.Second
)

// healthClient returns a client of the driver's health service; nil if it has none.
func (d *driver) healthClient(p pluginreg.Plugin) healthv1.DRAResourceHealthClient {
	switch {
	case slices.Contains(p.Versions, healthv1.DRAResourceHealthService):
		return healthv1.NewDRAResourceHealthClient(d.conn)
	case slices.Contains(p.Versions, healthv1alpha1.DRAResourceHealthService):
		return healthv1.V1Alpha1ClientWrapper{Client: healthv1alpha1.NewDRAResourceHealthClient(d.conn)}
	}
	return nil
}

// watchHealth watches the health of the driver's devices until ctx is done.
func (m *Manager) watchHealth(ctx context.Context, d *driver) {
	retry := backoff.Backoff{First: initialBackoff, Longest: maxBackoff}
	for {
		err := m.receiveHealth(ctx, d, retry.Reset)
		if ctx.Err() != nil {
			return // the next run of the agent restores the last reports
		}
		m.dropHealth(d)
		if status.Code(err) == codes.Unimplemented {
			return // an updated driver registers again
		}
		wait := retry.Next()
		m.deps.Log.Info("dra: device health watch failed", "driver", d.name, "err", err, "retryAfter", wait)
		if !m.sleep(ctx, wait) {
			return
		}
	}
}

// receiveHealth receives the reports of one stream, and calls onReport for each. It waits for a
// driver that is not connected.
func (m *Manager) receiveHealth(ctx context.Context, d *driver, onReport func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := d.health.NodeWatchResources(ctx, &healthv1.NodeWatchResourcesRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("NodeWatchResources: %w", err)
	}
	for {
		report, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("NodeWatchResources: %w", err)
		}
		onReport()
		m.recordHealth(d, report.GetDevices())
	}
}

// expireHealth drops reports that drivers did not renew in time, until ctx is done.
func (m *Manager) expireHealth(ctx context.Context) {
	for ctx.Err() == nil {
		m.await(ctx, m.healthChanged, m.dropExpiredHealth())
	}
}

// dropExpiredHealth drops expired reports. It returns the time until the next one expires, zero
// for never.
func (m *Manager) dropExpiredHealth() (next time.Duration) {
	now := m.deps.Clock.Now()
	pods, dropped := map[types.UID]bool{}, false
	m.mu.Lock()
	for name, reported := range m.health {
		expired := map[string]bool{}
		for key, h := range reported.Devices {
			if left := h.expires().Sub(now); left > 0 {
				if next == 0 || left < next {
					next = left
				}
				continue
			}
			delete(reported.Devices, key)
			dropped = true
			expired[key] = h.Health != v1.ResourceHealthStatusUnknown
		}
		maps.Copy(pods, m.podsUsingLocked(name, expired))
	}
	m.mu.Unlock()
	if dropped {
		m.saveHealth()
	}
	m.wake(pods)
	return next
}
