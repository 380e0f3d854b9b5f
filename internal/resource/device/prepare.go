package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"swiftlet/internal/pod"
)

// callTimeout bounds one call of a plugin.
const callTimeout = time.Minute

// Prepare has the plugins make the pod's devices ready, before anything of the pod starts.
// It may block, and is called by the pod's worker alone. While a plugin is away it fails,
// and the pod is woken when the plugin is back. A *pod.Rejection ends the pod.
func (m *Manager) Prepare(ctx context.Context, p *v1.Pod, observed *pod.Observed) error {
	given := false
	for c := range inOrder(p) {
		for resource, want := range m.snapshot(p, c) {
			fresh, err := m.prepareOne(ctx, p, place{p.UID, c.Name, resource}, want, observed)
			given = given || fresh
			if err != nil {
				return errors.Join(m.saveIf(given), refused(err))
			}
		}
	}
	if err := m.saveIf(given); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checked[p.UID] = true
	delete(m.waiting, p.UID)
	return nil
}

func (m *Manager) saveIf(given bool) error {
	if !given {
		return nil
	}
	return m.save()
}

func (m *Manager) snapshot(p *v1.Pod, c *v1.Container) map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]int{}
	for resource, want := range m.asks(p, c) {
		all[resource] = want
	}
	return all
}

// prepareOne sees to one container's devices of one resource. fresh means that there is
// something new to write down.
func (m *Manager) prepareOne(ctx context.Context, p *v1.Pod, at place, want int, observed *pod.Observed) (fresh bool, err error) {
	m.mu.Lock()
	g, checked, away := m.grants[at], m.checked[p.UID], m.away(at.resource)
	confirmed := g != nil && g.answer != nil
	runs := running(observed, at.container)
	m.mu.Unlock()
	switch {
	case confirmed && checked, runs:
		return false, nil
	case away:
		return false, m.wait(p, at.resource)
	case confirmed:
		return false, m.stillThere(at, g, len(observed.Live()) > 0)
	}
	if err := m.give(ctx, p, at, want); err != nil {
		return false, err
	}
	return true, nil
}

func running(o *pod.Observed, container string) bool {
	for _, c := range o.Live() {
		if c.Name == container {
			return true
		}
	}
	return false
}

// stillThere checks devices that an earlier agent gave to a pod of which nothing runs: the
// machine may have come up without them. A pod of which something runs is left in peace.
func (m *Manager) stillThere(at place, g *grant, alive bool) error {
	if alive {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.anyHealthy(at.resource); err != nil {
		return err
	}
	healthy := m.resources[at.resource].healthy()
	for id := range g.nodes {
		if !healthy[id] {
			return fmt.Errorf("previously allocated devices are no longer healthy; cannot allocate unhealthy devices %s", at.resource)
		}
	}
	return nil
}

// wait has the pod woken when the plugin is back, and tells the user once.
func (m *Manager) wait(p *v1.Pod, resource string) error {
	m.mu.Lock()
	told := m.waiting[p.UID] == resource
	m.waiting[p.UID] = resource
	m.mu.Unlock()
	if !told {
		m.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, "WaitingForDevicePlugin",
			"The device plugin of %s is not registered. The pod begins when it is, and fails if it is not within %s.", resource, grace)
	}
	return fmt.Errorf("wait for the device plugin of %s: %w", resource, errPasses)
}

// give chooses the devices together with the plugin and has it make them ready.
func (m *Manager) give(ctx context.Context, p *v1.Pod, at place, want int) error {
	m.mu.Lock()
	plugin := m.resources[at.resource].inUse()
	if plugin == nil { // it left a moment ago, or long ago
		away, err := m.away(at.resource), m.anyHealthy(at.resource)
		m.mu.Unlock()
		if away {
			return m.wait(p, at.resource)
		}
		return err
	}
	g, err := m.setAside(p, at, want, m.unlocked(ctx, plugin))
	m.mu.Unlock()
	if err != nil {
		return err
	}
	began := m.deps.Clock.Now()
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := plugin.client.Allocate(call, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: g.ids()}},
	})
	m.deps.Meters.Allocated.Took(at.resource, m.deps.Clock.Since(began))
	if err != nil {
		return passing(fmt.Errorf("ask the device plugin of %s to allocate: %w", at.resource, err), err)
	}
	if len(answer.GetContainerResponses()) == 0 {
		return fmt.Errorf("no containers return in allocation response %v", answer)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g.answer = answer.GetContainerResponses()[0]
	return nil
}

// passing tells a plugin that cannot be reached, or takes too long, from one that refuses.
// A refusal is shown as the plugin words it.
func passing(err, cause error) error {
	switch status.Code(cause) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return fmt.Errorf("%w: %w", err, errPasses)
	}
	return cause
}

// unlocked asks the plugin what it prefers, where it wants to be asked. The lock is held
// when it is called and when it returns, but not between.
func (m *Manager) unlocked(ctx context.Context, p *plugin) prefer {
	if !p.options.GetGetPreferredAllocationAvailable() {
		return nil
	}
	return func(available, must []string, size int) ([]string, error) {
		m.mu.Unlock()
		defer m.mu.Lock()
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		answer, err := p.client.GetPreferredAllocation(ctx, &pluginapi.PreferredAllocationRequest{
			ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
				AvailableDeviceIDs: available, MustIncludeDeviceIDs: must, AllocationSize: int32(size),
			}},
		})
		if err != nil {
			err = fmt.Errorf("device plugin GetPreferredAllocation rpc failed with err: %w", err)
			if passes := passing(err, errors.Unwrap(err)); errors.Is(passes, errPasses) {
				return nil, passes
			}
			return nil, err
		}
		if all := answer.GetContainerResponses(); len(all) > 0 {
			return all[0].GetDeviceIDs(), nil
		}
		return nil, nil
	}
}
