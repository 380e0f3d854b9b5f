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

// callTimeout limits one call to a plugin.
const callTimeout = time.Minute

// Prepare calls the plugins to allocate the pod's devices. The pod's worker calls it before it
// starts anything of the pod; it may block. While a plugin is absent it fails, and the pod is
// woken when the plugin reconnects. A *pod.Rejection fails the pod, and with a *pod.WaitError it
// waits until it is woken.
func (m *Manager) Prepare(ctx context.Context, p *v1.Pod, observed *pod.Observed) error {
	if err := m.awaitPlugins(p, observed); err != nil {
		return err
	}
	allocated := false
	for c := range containersInOrder(p) {
		for resource, want := range m.requests(p, c) {
			changed, err := m.prepareResource(ctx, p, allocationKey{p.UID, c.Name, resource}, want, observed)
			allocated = allocated || changed
			if err != nil {
				return errors.Join(m.saveIf(allocated), rejectUnlessTransient(err))
			}
		}
	}
	if err := m.saveIf(allocated); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, p.UID)
	return nil
}

func (m *Manager) saveIf(allocated bool) error {
	if !allocated {
		return nil
	}
	return m.save()
}

func (m *Manager) requests(p *v1.Pod, c *v1.Container) map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]int{}
	for resource, want := range m.requestsLocked(p, c) {
		all[resource] = want
	}
	return all
}

// prepareResource prepares one container's devices of one resource. changed means that the
// checkpoint must be written.
func (m *Manager) prepareResource(ctx context.Context, p *v1.Pod, key allocationKey, want int, observed *pod.Observed) (changed bool, err error) {
	m.mu.Lock()
	g, absent := m.allocations[key], m.pluginAbsentLocked(key.resource)
	confirmed, verified := g != nil && g.response != nil, g.verified()
	m.mu.Unlock()
	switch {
	case verified, running(observed, key.container):
		return false, nil
	case absent:
		return false, m.waitForPlugin(p, key.resource)
	case confirmed:
		return false, m.verifyDevices(key, g)
	}
	if err := m.allocateFromPlugin(ctx, p, key, want); err != nil {
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

// verifyDevices checks restored devices: the machine may have rebooted without them.
func (m *Manager) verifyDevices(key allocationKey, g *allocation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkHealthyLocked(key.resource); err != nil {
		return err
	}
	healthy := m.resources[key.resource].healthy()
	for id := range g.nodes {
		if !healthy[id] {
			return fmt.Errorf("previously allocated devices are no longer healthy; cannot allocate unhealthy devices %s", key.resource)
		}
	}
	g.unverified = false
	return nil
}

// waitForPlugin makes the plugin's connection wake the pod, and records an event once.
func (m *Manager) waitForPlugin(p *v1.Pod, resource string) error {
	m.mu.Lock()
	report := m.waitLocked(p, resource)
	m.mu.Unlock()
	if report {
		m.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, "WaitingForDevicePlugin",
			"The device plugin of %s is not registered. The pod begins when it is, and fails if it is not within %s.", resource, pluginGrace)
	}
	return fmt.Errorf("wait for device plugin of %s: %w", resource, errTransient)
}

// allocateFromPlugin chooses devices by the plugin's preference and calls its Allocate.
func (m *Manager) allocateFromPlugin(ctx context.Context, p *v1.Pod, key allocationKey, want int) error {
	m.mu.Lock()
	plugin := m.resources[key.resource].active()
	if plugin == nil { // disconnected meanwhile
		absent, err := m.pluginAbsentLocked(key.resource), m.checkHealthyLocked(key.resource)
		m.mu.Unlock()
		if absent {
			return m.waitForPlugin(p, key.resource)
		}
		return err
	}
	g, err := m.reserveLocked(p, key, want, m.preferenceFunc(ctx, plugin))
	m.mu.Unlock()
	if err != nil {
		return err
	}
	began := m.deps.Clock.Now()
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := plugin.client.Allocate(call, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: g.ids()}},
	})
	m.deps.Meters.Allocated.Took(key.resource, m.deps.Clock.Since(began))
	if err != nil {
		return classifyPluginError(fmt.Errorf("allocate from device plugin of %s: %w", key.resource, err), err)
	}
	if len(response.GetContainerResponses()) == 0 {
		return fmt.Errorf("no containers return in allocation response %v", response)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g.response = response.GetContainerResponses()[0]
	return nil
}

// classifyPluginError marks err as transient if the plugin was unreachable or too slow. It
// returns any other error as the plugin sent it.
func classifyPluginError(err, cause error) error {
	switch status.Code(cause) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return fmt.Errorf("%w: %w", err, errTransient)
	}
	return cause
}

// preferenceFunc returns a function that calls the plugin's GetPreferredAllocation; nil if the
// plugin does not implement it. The function unlocks the manager during the call.
func (m *Manager) preferenceFunc(ctx context.Context, p *plugin) preferFunc {
	if !p.options.GetGetPreferredAllocationAvailable() {
		return nil
	}
	return func(available, must []string, size int) ([]string, error) {
		m.mu.Unlock()
		defer m.mu.Lock()
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		response, err := p.client.GetPreferredAllocation(ctx, &pluginapi.PreferredAllocationRequest{
			ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
				AvailableDeviceIDs: available, MustIncludeDeviceIDs: must, AllocationSize: int32(size),
			}},
		})
		if err != nil {
			err = fmt.Errorf("device plugin GetPreferredAllocation rpc failed with err: %w", err)
			if passes := classifyPluginError(err, errors.Unwrap(err)); errors.Is(passes, errTransient) {
				return nil, passes
			}
			return nil, err
		}
		if all := response.GetContainerResponses(); len(all) > 0 {
			return all[0].GetDeviceIDs(), nil
		}
		return nil, nil
	}
}
