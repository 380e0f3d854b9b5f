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

// A driver that does not tell is asked again after firstWait, then after twice as long each
// time.
const (
	firstWait   = time.Second
	longestWait = 30 * time.Second
)

// hearing is how the driver tells the health of its devices; nil if it does not.
func (d *driver) hearing(p pluginreg.Plugin) healthv1.DRAResourceHealthClient {
	switch {
	case slices.Contains(p.Versions, healthv1.DRAResourceHealthService):
		return healthv1.NewDRAResourceHealthClient(d.conn)
	case slices.Contains(p.Versions, healthv1alpha1.DRAResourceHealthService):
		return healthv1.V1Alpha1ClientWrapper{Client: healthv1alpha1.NewDRAResourceHealthClient(d.conn)}
	}
	return nil
}

// listen follows what the driver says of its devices until ctx is done.
func (m *Manager) listen(ctx context.Context, d *driver) {
	retry := backoff.Backoff{First: firstWait, Longest: longestWait}
	for {
		err := m.hear(ctx, d, retry.Reset)
		if ctx.Err() != nil {
			return // with the agent: the next one goes on from what was said
		}
		m.silent(d)
		if status.Code(err) == codes.Unimplemented {
			return // a driver that learns to tell registers anew
		}
		wait := retry.Next()
		m.deps.Log.Info("driver does not tell the health of its devices", "driver", d.name, "err", err, "retry", wait)
		if !m.sleep(ctx, wait) {
			return
		}
	}
}

// hear takes the reports of one stream. It waits for a driver that is not there.
func (m *Manager) hear(ctx context.Context, d *driver, got func()) error {
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
		got()
		m.heard(d, report.GetDevices())
	}
}

// age forgets what drivers have said and not said again in time, until ctx is done.
func (m *Manager) age(ctx context.Context) {
	for ctx.Err() == nil {
		m.await(ctx, m.told, m.stale())
	}
}

// stale forgets what is too old. It returns when the next will be, zero for never.
func (m *Manager) stale() (next time.Duration) {
	now := m.deps.Clock.Now()
	pods, forgotten := map[types.UID]bool{}, false
	m.mu.Lock()
	for name, said := range m.health {
		gone := map[string]bool{}
		for at, h := range said.Devices {
			if rest := h.due().Sub(now); rest > 0 {
				if next == 0 || rest < next {
					next = rest
				}
				continue
			}
			delete(said.Devices, at)
			forgotten = true
			gone[at] = h.Health != v1.ResourceHealthStatusUnknown
		}
		maps.Copy(pods, m.using(name, gone))
	}
	m.mu.Unlock()
	if forgotten {
		m.saveHealth()
	}
	m.wake(pods)
	return next
}
