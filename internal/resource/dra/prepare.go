package dra

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"swiftlet/internal/pod"
)

// Prepare calls drivers to prepare the pod's claims. The pod's worker calls it before it starts
// anything of the pod; it may block. It records an event for an error; the worker retries.
func (m *Manager) Prepare(ctx context.Context, p *v1.Pod, observed *pod.Observed) error {
	if len(p.Spec.ResourceClaims) == 0 && p.Status.ExtendedResourceClaimStatus == nil {
		return nil
	}
	if m.ready(p, observed) {
		return nil
	}
	began := m.deps.Clock.Now()
	err := m.prepare(ctx, p)
	m.deps.Meters.Operation.Done("PrepareResources", m.deps.Clock.Since(began), err)
	m.mu.Lock()
	delete(m.waiting, p.UID)
	if err != nil {
		m.waiting[p.UID] = true
	}
	m.mu.Unlock()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("prepare dynamic resources: %w", err)
	m.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, "FailedPrepareDynamicResources", "Failed to prepare dynamic resources: %v", err)
	return err
}

// ready reports whether all claims are prepared. Claims that an earlier run of the agent prepared
// count while the pod's sandbox is ready.
func (m *Manager) ready(p *v1.Pod, observed *pod.Observed) bool {
	all, err := claimRefs(p)
	if err != nil {
		return false
	}
	sandbox := observed.Sandbox()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ref := range all {
		c := m.claims[ref.key]
		if c == nil || !c.PodUIDs.Has(string(p.UID)) || c.unpreparing || !c.prepared && (sandbox == nil || !sandbox.Ready) {
			return false
		}
	}
	return true
}

func (m *Manager) prepare(ctx context.Context, p *v1.Pod) error {
	all, err := claimRefs(p)
	if err != nil {
		return err
	}
	// Every claim is checked before any is recorded, so that a pod whose preparation fails here
	// can be removed without its driver, which may never have been registered.
	found := make([]*resourceapi.ResourceClaim, len(all))
	for i, ref := range all {
		if found[i], err = m.fetchClaim(ctx, p, ref); err != nil {
			return err
		}
	}
	unprepared, err := m.addPod(p, found)
	if err != nil {
		return err
	}
	// The checkpoint precedes the calls, so that a restarted agent can unprepare the claims.
	if err := m.save(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(unprepared)) {
		if err := m.prepareOn(ctx, name, unprepared[name]); err != nil {
			return err
		}
	}
	m.mu.Lock()
	for _, c := range found {
		m.claims[key{c.Namespace, c.Name}].prepared = true
	}
	m.mu.Unlock()
	return m.save()
}

// fetchClaim reads the claim and checks that it can be prepared for the pod.
func (m *Manager) fetchClaim(ctx context.Context, p *v1.Pod, ref claimRef) (*resourceapi.ResourceClaim, error) {
	if m.deps.API == nil {
		return nil, fmt.Errorf("fetch ResourceClaim %s: there is no API server", ref.key.name)
	}
	c, err := m.deps.API.Claim(ctx, ref.key.namespace, ref.key.name)
	if err != nil {
		return nil, fmt.Errorf("fetch ResourceClaim %s: %w", ref.key.name, err)
	}
	if err := m.checkAccess(p, ref, c); err != nil {
		return nil, err
	}
	for name, s := range newClaim(c).DriverState {
		if len(s.SkipNodeOperations) > 0 && !m.cfg.OptionalOperations {
			return nil, fmt.Errorf("ResourceClaim %s: DRAOptionalNodeOperations feature gate is disabled on kubelet", c.Name)
		}
		if s.skips(resourceapi.SkipNodeOperationNodePrepareResources) {
			continue
		}
		if _, err := m.find(name); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// addPod adds the pod to its claims. It returns the claims that drivers have yet to prepare.
func (m *Manager) addPod(p *v1.Pod, found []*resourceapi.ResourceClaim) (map[string][]*drav1.Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	unprepared := map[string][]*drav1.Claim{}
	for _, f := range found {
		k := key{f.Namespace, f.Name}
		c := m.claims[k]
		switch {
		case c == nil:
			c = newClaim(f)
			m.claims[k] = c
		case c.ClaimUID != f.UID:
			return nil, fmt.Errorf("old ResourceClaim with same name %s and different UID %s still exists (previous pod force-deleted?!)", f.Name, c.ClaimUID)
		case c.unpreparing:
			return nil, fmt.Errorf("ResourceClaim %s is being unprepared", f.Name)
		}
		c.PodUIDs.Insert(string(p.UID))
		if c.prepared {
			continue
		}
		for name, s := range c.DriverState {
			if !s.skips(resourceapi.SkipNodeOperationNodePrepareResources) {
				unprepared[name] = append(unprepared[name], c.message())
			}
		}
	}
	return unprepared, nil
}

func (c *claim) message() *drav1.Claim {
	return &drav1.Claim{Namespace: c.Namespace, Uid: string(c.ClaimUID), Name: c.ClaimName}
}

// prepareOn calls one driver to prepare claims, and records the devices that it returns.
func (m *Manager) prepareOn(ctx context.Context, name string, claims []*drav1.Claim) error {
	d, err := m.find(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := d.client.NodePrepareResources(ctx, &drav1.NodePrepareResourcesRequest{Claims: claims})
	if err != nil {
		return fmt.Errorf("NodePrepareResources: %w", err)
	}
	for _, c := range claims {
		result, ok := response.GetClaims()[c.Uid]
		if !ok {
			return fmt.Errorf("NodePrepareResources skipped %s ResourceClaims", strconv.Itoa(len(claims)-len(response.GetClaims())))
		}
		if result.GetError() != "" {
			return fmt.Errorf("NodePrepareResources failed for ResourceClaim %s: %s", c.Name, result.GetError())
		}
		m.setDevices(name, key{c.Namespace, c.Name}, result.GetDevices())
	}
	return nil
}

// setDevices replaces a driver's devices of a claim.
func (m *Manager) setDevices(driver string, k key, devices []*drav1.Device) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.claims[k]
	if c == nil {
		return
	}
	s := c.DriverState[driver]
	s.Devices = nil
	for _, d := range devices {
		s.Devices = append(s.Devices, device{
			PoolName: d.GetPoolName(), DeviceName: d.GetDeviceName(), ShareID: (*types.UID)(d.ShareId),
			RequestNames: d.GetRequestNames(), CDIDeviceIDs: d.GetCdiDeviceIds(),
		})
	}
	c.DriverState[driver] = s
}
